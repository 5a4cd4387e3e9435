import { Type } from 'typebox';
import { definitionPreview, segmentDetail, segmentPreview, userSegments } from '../../api/definition.ts';
import { object } from '../../api/schema.ts';
import { inputError } from '../../domain/errors.ts';
import { READ_TIMEOUT_MS, SEGMENT_PREVIEW_USERS } from '../../domain/limits.ts';
import { readProfile } from '../../postgres/stores/profiles.ts';
import { findSegmentItem } from '../../postgres/stores/segments.ts';
import { findSegment, findSegmentsOf } from '../../profiles/profiles.ts';
import { previewSegment } from '../../segments/compile-segment.ts';
import { describeSegment, readSegment } from '../../segments/read-segment.ts';
import type { Segment } from '../../segments/segment.ts';
import { throwProblems, worded } from '../../validation.ts';
import { pathParameter } from '../parameters.ts';
import { type Route, route } from '../route.ts';
import { noSuchProfile, userParameters } from './profiles.ts';

const noSuchSegment = 'there is no such segment';

const params = pathParameter(
  'segment_id',
  Type.String({
    pattern: '^[0-9]{1,10}$',
    description: 'ID of the segment in the segment lookup.',
    examples: ['3'],
  }),
  noSuchSegment,
);

const show = route({
  at: 'GET /v1/segments/:segment_id',
  operationId: 'showSegment',
  summary: 'Show a segment',
  description: 'Returns the segment with its definition, as JSON and in words.',
  access: 'read',
  params,
  answer: { description: 'The segment.', schema: segmentDetail.ref },
  handle: async ({ system: { reader }, params: { segment_id }, environment }) => {
    const found = await findSegmentItem(reader.db, environment, Number(segment_id));
    if (found === null) throw inputError('not_found', noSuchSegment, `segment_id: ${segment_id}`);
    const { segment } = readSegment(found.definition);
    const { id, key, title, usage, category, is_hidden, is_protected, status } = found;
    return {
      ...{ id, title, usage, category, is_hidden, is_protected, status, key },
      definition: found.definition as Record<string, unknown>,
      // A definition that a newer version of this program has written is shown as it is.
      words: segment === null ? [] : describeSegment(segment),
    };
  },
});

const preview = route({
  at: 'GET /v1/segments/:segment_id/preview',
  operationId: 'previewSegment',
  summary: 'Preview a segment',
  description: `Returns the number of users in the segment now, and some of them, all of one moment. Returns 503 if counting takes more than ${READ_TIMEOUT_MS / 1_000} seconds; \`sluice segments preview\` waits longer, and an export has no such limit.`,
  access: 'read',
  params,
  answer: { description: 'The preview.', schema: segmentPreview.ref },
  refuses: ['unknown_segment'],
  handle: async ({ system: { reader }, params: { segment_id }, environment }) => {
    const id = Number(segment_id);
    const segment = await findSegment(reader.db, environment, id);
    if (segment === null) throw inputError('not_found', noSuchSegment, `segment_id: ${id}`);
    const { users, sample } = await reader.inTurn(() =>
      previewSegment(reader.db, environment, segment, previewLimits),
    );
    return { id, count: users, user_ids: sample };
  },
});

const previewLimits = { sample: SEGMENT_PREVIEW_USERS, timeoutMs: READ_TIMEOUT_MS };

const definitionBody = object(
  {
    definition: worded(
      Type.Object(
        {},
        { additionalProperties: true, description: 'The definition, in the language of docs/segments.md.' },
      ),
      'definition must be an object',
    ),
  },
  'A definition that is not stored.',
);

const previewDefinition = route({
  at: 'POST /v1/segments/preview',
  operationId: 'previewDefinition',
  summary: 'Preview a definition',
  description: `Returns the number of users whom a definition matches now, and some of them, all of one moment. Nothing is stored: segments are defined in the definitions file. Returns 503 if counting takes more than ${READ_TIMEOUT_MS / 1_000} seconds.`,
  access: 'read',
  json: {
    schema: definitionBody,
    examples: {
      plan: {
        summary: 'By a property',
        value: { definition: { property: 'plan', in: ['pro', 'enterprise'] } },
      },
    },
  },
  answer: { description: 'The preview.', schema: definitionPreview.ref },
  handle: async ({ system: { reader }, environment, body }) => {
    const segment = readDefinition(body.definition);
    const { users, sample } = await reader.inTurn(() =>
      previewSegment(reader.db, environment, segment, previewLimits),
    );
    return { count: users, user_ids: sample, words: describeSegment(segment) };
  },
});

function readDefinition(definition: unknown): Segment {
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

const listOfUser = route({
  at: 'GET /v1/users/:user_id/segments',
  operationId: 'listUserSegments',
  summary: 'List the segments of a user',
  description:
    'Returns the current segments of the user. Segments are checked in the order of their IDs, for about one second; `asked` says how many of `total` were checked.',
  access: 'read',
  params: userParameters,
  answer: { description: 'The segments.', schema: userSegments.ref },
  handle: async ({ system: { reader }, params: { user_id: userId }, environment }) => {
    if ((await readProfile(reader, 'users', environment, userId)) === null) {
      throw noSuchProfile('users', userId);
    }
    const { ids, asked, total } = await findSegmentsOf(reader, environment, userId);
    return { segment_ids: ids, asked, total };
  },
});

export const segmentRoutes: readonly Route[] = [show, preview, previewDefinition, listOfUser];
