import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { segmentPage } from '../../api/segment.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { DEFAULT_PAGE_SIZE, MAX_LOOKUP_PAGE_SIZE, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { listSegments } from '../../postgres/stores/segments.ts';
import { cursorParameter, limitParameter } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { refusals } from '../schemas/answers.ts';

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
