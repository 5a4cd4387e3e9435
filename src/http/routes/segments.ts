import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { withExamples } from '../../api/schema.ts';
import {
  definitionPreview,
  segmentDetail,
  segmentPage,
  segmentPreview,
  userSegments,
} from '../../api/segment.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import {
  DEFAULT_PAGE_SIZE,
  MAX_LOOKUP_PAGE_SIZE,
  MAX_PAGE_BYTES,
  READ_TIMEOUT_MS,
  SEGMENT_PREVIEW_USERS,
} from '../../domain/limits.ts';
import { readProfile } from '../../postgres/stores/profiles.ts';
import { findSegmentItem, listSegments } from '../../postgres/stores/segments.ts';
import { findSegment } from '../../profiles/find-segment.ts';
import { findSegmentsOf } from '../../profiles/find-segments-of.ts';
import { describeSegment } from '../../segments/describe-segment.ts';
import { previewSegment } from '../../segments/preview-segment.ts';
import { readSegment } from '../../segments/read-segment.ts';
import type { Segment } from '../../segments/segment.ts';
import { throwProblems, worded } from '../../validation.ts';
import { cursorParameter, limitParameter } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals, refusals } from '../schemas/answers.ts';
import { noSuchProfile, userParameters } from './profiles.ts';

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

const noSuchSegment = 'there is no such segment';

const segmentParameters = Type.Object({
  segment_id: worded(
    Type.String({
      pattern: '^[0-9]{1,10}$',
      description: 'Its id in the lookup of segments.',
      examples: ['3'],
    }),
    { says: { code: 'not_found', message: noSuchSegment, details: 'segment_id' } },
  ),
});

const showSegmentSchema = {
  operationId: 'showSegment',
  summary: 'Show a segment',
  description: 'What the operator wrote of it, with the definition, as JSON and in words.',
  tags: ['reading'],
  params: segmentParameters,
  response: {
    200: { description: 'The segment.', content: { 'application/json': { schema: segmentDetail.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function showSegment(app: FastifyInstance, { reader }: System): void {
  const options = { config: { scope: 'read' }, schema: showSegmentSchema } as const;
  const path = '/v1/segments/:segment_id';
  app.get<{ Params: Static<typeof segmentParameters> }>(path, options, async (request, reply) => {
    const id = Number(request.params.segment_id);
    const found = await findSegmentItem(reader.db, environmentId(request), id);
    if (found === null) throw inputError('not_found', noSuchSegment, `segment_id: ${id}`);
    const { segment } = readSegment(found.definition);
    // One that a newer version of this program has written is shown as it is.
    const words = segment === null ? [] : describeSegment(segment);
    const { id: segmentId, key, title, usage, category, is_hidden, is_protected, status } = found;
    const detail: Static<typeof segmentDetail.schema> = {
      ...{ id: segmentId, title, usage, category, is_hidden, is_protected, status },
      ...{ key, definition: found.definition as Record<string, unknown>, words },
    };
    return reply.send(detail);
  });
}

const previewSegmentSchema = {
  operationId: 'previewSegment',
  summary: 'Preview a segment',
  description: `How many users are in it now, and some of them, of one moment. What cannot be counted within ${READ_TIMEOUT_MS / 1_000} seconds is 503: \`sluice segments preview\` waits longer, an export as long as it takes.`,
  tags: ['reading'],
  params: segmentParameters,
  response: {
    200: { description: 'The preview.', content: { 'application/json': { schema: segmentPreview.ref } } },
    ...jobRefusals('unknown_segment'),
  },
} satisfies FastifySchema;

export function previewSegmentRoute(app: FastifyInstance, { reader }: System): void {
  const options = { config: { scope: 'read' }, schema: previewSegmentSchema } as const;
  const path = '/v1/segments/:segment_id/preview';
  app.get<{ Params: Static<typeof segmentParameters> }>(path, options, async (request, reply) => {
    const environment = environmentId(request);
    const id = Number(request.params.segment_id);
    const segment = await findSegment(reader.db, environment, id);
    if (segment === null) throw inputError('not_found', noSuchSegment, `segment_id: ${id}`);
    const { users, sample } = await reader.inTurn(() =>
      previewSegment(reader.db, environment, segment, {
        sample: SEGMENT_PREVIEW_USERS,
        timeoutMs: READ_TIMEOUT_MS,
      }),
    );
    const preview: Static<typeof segmentPreview.schema> = { id, count: users, user_ids: [...sample] };
    return reply.send(preview);
  });
}

const body = Type.Object(
  {
    definition: Type.Object(
      {},
      { additionalProperties: true, description: 'In the language of docs/segments.md.' },
    ),
  },
  { additionalProperties: false, description: 'A definition that is not stored.' },
);

const previewDefinitionSchema = {
  operationId: 'previewDefinition',
  summary: 'Preview a definition',
  description: `How many users a segment of this definition would have now, and some of them, of one moment. Nothing is stored: segments are defined in the definitions file. What cannot be counted within ${READ_TIMEOUT_MS / 1_000} seconds is 503.`,
  tags: ['reading'],
  body: {
    content: {
      'application/json': withExamples(body, {
        plan: {
          summary: 'By a property',
          value: { definition: { property: 'plan', in: ['pro', 'enterprise'] } },
        },
      }),
    },
  },
  response: {
    200: { description: 'The preview.', content: { 'application/json': { schema: definitionPreview.ref } } },
    ...refusals(
      'invalid_json',
      'missing_field',
      'invalid_field',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

export function previewDefinition(scope: FastifyInstance, { reader }: System): void {
  const options = { config: { scope: 'read' }, schema: previewDefinitionSchema } as const;
  scope.post('/v1/segments/preview', options, async (request, reply) => {
    const segment = readDefinition(readJsonObject(bodyBytes(request)));
    const { users, sample } = await reader.inTurn(() =>
      previewSegment(reader.db, environmentId(request), segment, {
        sample: SEGMENT_PREVIEW_USERS,
        timeoutMs: READ_TIMEOUT_MS,
      }),
    );
    const preview: Static<typeof definitionPreview.schema> = {
      count: users,
      user_ids: [...sample],
      words: describeSegment(segment),
    };
    return reply.send(preview);
  });
}

/** @throws InputError with every problem of the definition and its place. */
function readDefinition({ definition, ...others }: Readonly<Record<string, unknown>>): Segment {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw inputError('invalid_field', 'There is no such field', unknown.slice(0, 100));
  }
  if (definition === undefined) throw inputError('missing_field', 'definition is missing', 'definition');
  const { segment, problems } = readSegment(definition);
  if (segment !== null) return segment;
  throwProblems(
    problems.map(({ path, message }) => ({
      code: 'invalid_field',
      message: `${path} ${message}`,
      details: path,
    })),
  );
  throw inputError('invalid_field', 'The definition cannot be read', 'definition');
}

const listUserSegmentsSchema = {
  operationId: 'listUserSegments',
  summary: 'List the segments of a user',
  description:
    'Which segments the user is in at this moment. Segments are asked in the order of their ids, for about a second: `asked` says how many of `total` were.',
  tags: ['reading'],
  params: userParameters,
  response: {
    200: { description: 'The segments.', content: { 'application/json': { schema: userSegments.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function listUserSegments(app: FastifyInstance, { reader }: System): void {
  const options = { config: { scope: 'read' }, schema: listUserSegmentsSchema } as const;
  const path = '/v1/users/:user_id/segments';
  app.get<{ Params: Static<typeof userParameters> }>(path, options, async (request, reply) => {
    const environment = environmentId(request);
    const { user_id: userId } = request.params;
    if ((await readProfile(reader, 'users', environment, userId)) === null) {
      throw noSuchProfile('users', userId);
    }
    const { ids, asked, total } = await findSegmentsOf(reader, environment, userId);
    const answer: Static<typeof userSegments.schema> = { segment_ids: [...ids], asked, total };
    return reply.send(answer);
  });
}
