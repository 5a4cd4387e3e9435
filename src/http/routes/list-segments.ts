import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { DEFAULT_PAGE_SIZE, MAX_LOOKUP_PAGE_SIZE, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { listSegments } from '../../postgres/stores/segments.ts';
import { cursorParameter, limitParameter } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { component, orNull, refusals } from '../schemas/answers.ts';

export const segmentItem = component(
  'Segment',
  Type.Object(
    {
      id: Type.Integer({ minimum: 1, description: 'The `segment_id` of exports.' }),
      title: Type.String({ description: 'What people call it.' }),
      usage: Type.String({ description: 'What it is used for, in words of the operator.' }),
      category: Type.String({ description: 'What it is sorted under, in words of the operator.' }),
      is_hidden: Type.Boolean({ description: 'Not to be offered for choice; it can be used all the same.' }),
      is_protected: Type.Boolean({ description: 'It is not removed by mistake.' }),
      status: Type.String({ description: 'In words of the operator; the service does nothing with it.' }),
    },
    {
      additionalProperties: false,
      description: 'A group of users that exports can be narrowed to.',
      examples: [
        {
          id: 3,
          title: 'Power users',
          usage: 'analytics',
          category: 'Engagement',
          is_hidden: false,
          is_protected: true,
          status: 'active',
        },
      ],
    },
  ),
);

export const segmentPage = component(
  'SegmentPage',
  Type.Object(
    {
      data: Type.Array(segmentItem.ref, { description: 'The segments of the page.' }),
      metadata: Type.Object(
        {
          cursor: Type.Object(
            {
              after: Type.String({ description: 'The `after_cursor` of the next page; empty on the last.' }),
              before: orNull(
                Type.String({
                  description: 'The `before_cursor` of the page before; null on the first.',
                  examples: [null],
                }),
              ),
            },
            { additionalProperties: false, description: 'What leads to the pages beside this one.' },
          ),
          limit: Type.Integer({
            minimum: 1,
            maximum: MAX_LOOKUP_PAGE_SIZE,
            description: 'Segments on a page, at most.',
            examples: [100],
          }),
          total_count: Type.Integer({ minimum: 0, description: 'Segments on all pages.', examples: [1] }),
        },
        { additionalProperties: false, description: 'Of the page.' },
      ),
    },
    { additionalProperties: false, description: 'A page of segments, by id.' },
  ),
);
type SegmentPageLookup = Static<typeof segmentPage.schema>;

const cursor = (name: string, description: string) =>
  cursorParameter(readSegmentCursor, `${name} is taken, unchanged, from metadata.cursor`, description);

const query = listQuery({
  limit: limitParameter(MAX_LOOKUP_PAGE_SIZE, 'Segments on a page.'),
  after_cursor: cursor(
    'after_cursor',
    'The page after it: `metadata.cursor.after` of the page before, unchanged.',
  ),
  before_cursor: cursor(
    'before_cursor',
    'The page before it: `metadata.cursor.before`, unchanged. Not both.',
  ),
});

const listSegmentsSchema = {
  operationId: 'listSegments',
  summary: 'List segments',
  description:
    'The segments that the operator defined, by id, page by page. A cursor stays good when segments are added or removed. A body of the request is ignored; other parameters are refused.',
  tags: ['lookups'],
  querystring: query,
  response: {
    200: { description: 'A page of segments.', content: { 'application/json': { schema: segmentPage.ref } } },
    ...refusals('invalid_field', 'invalid_cursor'),
  },
} satisfies FastifySchema;

const path = '/api/v1/analytics/exports/lookups/segments';

/** The one lookup that comes in pages. */
export function listSegmentPages(app: FastifyInstance, system: System): void {
  const options = {
    config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
    schema: listSegmentsSchema,
  } as const;
  app.get<{ Querystring: Static<typeof query> }>(path, options, async (request, reply) => {
    const { limit = DEFAULT_PAGE_SIZE, after_cursor = '', before_cursor = '' } = request.query;
    if (after_cursor !== '' && before_cursor !== '') {
      const message = 'Give either after_cursor or before_cursor; a page lies on one side of a cursor';
      throw inputError('invalid_field', message, 'before_cursor');
    }
    const [after, before] = [readSegmentCursor(after_cursor), readSegmentCursor(before_cursor)];
    const { segments, total, hasBefore, hasAfter } = await listSegments(
      system.reader.db,
      environmentId(request),
      { limit, after, before },
    );
    const [first, last] = [segments[0], segments.at(-1)];
    const page: SegmentPageLookup = {
      data: [...segments],
      metadata: {
        cursor: {
          // The interface has a string here; an empty one ends the loop of a caller as null would.
          after: hasAfter && last !== undefined ? writeSegmentCursor(last.id) : '',
          before: hasBefore && first !== undefined ? writeSegmentCursor(first.id) : null,
        },
        limit,
        total_count: total,
      },
    };
    return reply.send(page);
  });
}

const form = /^segment:(\d{1,10})$/;
/** Of an integer in Postgres. */
const highestId = 2 ** 31 - 1;

/** Opaque to callers: the segment at which a page began or ended. */
function writeSegmentCursor(id: number): string {
  return Buffer.from(`segment:${id}`).toString('base64url');
}

/** Null for what is no cursor. */
function readSegmentCursor(cursor: string): number | null {
  const digits = form.exec(Buffer.from(cursor, 'base64url').toString('latin1'))?.[1];
  const id = Number(digits);
  return digits !== undefined && id <= highestId && writeSegmentCursor(id) === cursor ? id : null;
}
