import type pg from 'pg';
import type { Logger } from 'pino';
import { Type } from 'typebox';
import { TookTooLong } from '../base/errors.ts';
import { READ_TIMEOUT_MS, SEGMENT_PREVIEW_USERS } from '../base/limits.ts';
import type { Act } from '../domain/act.ts';
import { abortWhenClosed } from '../http/gone-client.ts';
import { pathParameter } from '../http/parameters.ts';
import { type Call, type Route, route } from '../http/route.ts';
import { object } from '../http/schema.ts';
import { definitionPreview, segmentDetail } from '../lookups/api.ts';
import { readMembers, type SegmentMembers } from '../lookups/segment-store.ts';
import { compileSegment } from '../lookups/segments/compile-segment.ts';
import { describeSegment } from '../lookups/segments/read-segment.ts';
import type { Segment } from '../lookups/segments/segment.ts';
import {
  changedSegment,
  changeSegment,
  createSegment,
  definitionField,
  newSegment,
  parseDefinition,
  removeSegment,
  renderSegment,
  requireDefinition,
  requireSegmentItem,
} from '../lookups/segments.ts';
import { act } from '../postgres/acts.ts';
import { type Database, databaseOn } from '../postgres/database.ts';
import { inSnapshot } from '../postgres/session.ts';

const params = pathParameter(
  'segment_id',
  Type.String({
    pattern: '^[0-9]{1,10}$',
    description: 'ID of the segment in the segment lookup.',
    examples: ['3'],
  }),
  'There is no such segment',
);

const show = route({
  at: 'GET /v1/segments/:segment_id',
  operationId: 'showSegment',
  summary: 'Show a segment',
  description: 'Returns the segment with its definition, as JSON and in words.',
  access: 'read',
  params,
  answer: { description: 'The segment.', schema: segmentDetail.ref },
  handle: async (call) => renderSegment(await itemOf(call)),
});

function itemOf({ system: { reader }, params, environment }: Call<{ segment_id: string }>) {
  return requireSegmentItem(reader.db, environment, Number(params.segment_id));
}

const definition = { property: 'plan', in: ['pro', 'enterprise'] };
const payers = { title: 'Payers', definition };

function describe(action: Act['action'], environmentId: number, segmentId: number): Act {
  return { action, environmentId, thing: String(segmentId) };
}

const create = route({
  at: 'POST /v1/segments',
  operationId: 'createSegment',
  summary: 'Create a segment',
  description:
    'Creates a segment beside those of the definitions file. The file does not remove it, unless it names its key: then the file wins.',
  access: 'import',
  json: {
    schema: newSegment,
    examples: { plan: { summary: 'By a property', value: { key: 'payers', ...payers } } },
  },
  answer: { status: 201, description: 'The segment.', schema: segmentDetail.ref },
  refuses: ['segment_exists'],
  handle: async ({ system, environment, body }) => {
    const create = (db: Database) => createSegment(db, environment, body);
    return renderSegment(await act(system, create, ({ id }) => describe('segment.created', environment, id)));
  },
});

const change = route({
  at: 'PUT /v1/segments/:segment_id',
  operationId: 'changeSegment',
  summary: 'Change a segment',
  description:
    'Replaces everything but the ID and the key. Segments of the definitions file are changed there.',
  access: 'import',
  params,
  json: { schema: changedSegment, examples: { plan: { summary: 'By a property', value: payers } } },
  answer: { description: 'The segment as it is now.', schema: segmentDetail.ref },
  refuses: ['definition_locked', 'segment_exists'],
  handle: async ({ system, params: { segment_id }, environment, body }) => {
    const change = (db: Database) => changeSegment(db, environment, Number(segment_id), body);
    return renderSegment(await act(system, change, ({ id }) => describe('segment.changed', environment, id)));
  },
});

const remove = route({
  at: 'DELETE /v1/segments/:segment_id',
  operationId: 'deleteSegment',
  summary: 'Delete a segment',
  description: 'Deletes the segment. Segments of the definitions file and protected ones are refused.',
  access: 'import',
  params,
  answer: { status: 204, description: 'The segment is deleted.' },
  refuses: ['definition_locked'],
  handle: async ({ system, params: { segment_id }, environment }) => {
    const remove = (db: Database) => removeSegment(db, environment, Number(segment_id));
    await act(system, remove, () => describe('segment.deleted', environment, Number(segment_id)));
    return undefined;
  },
});

interface PreviewLimits {
  /** Number of users that are listed. */
  readonly sample: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Counts a segment's users, and lists the first few of them. @throws TookTooLong */
export async function previewSegment(
  source: { readonly pool: pg.Pool; readonly log: Logger },
  environmentId: number,
  segment: Segment,
  { sample, timeoutMs, signal }: PreviewLimits,
): Promise<SegmentMembers> {
  const late = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([signal, late]);
  const scope = { environmentId, now: new Date(), user: 'u' };
  try {
    return await inSnapshot(source, { name: 'sluice segment', signal: either }, ({ client }) =>
      readMembers(databaseOn(client), compileSegment(segment, scope), sample),
    );
  } catch (error) {
    signal.throwIfAborted();
    throw late.aborted ? new TookTooLong() : error;
  }
}

/**
 * Counts the users of a segment. Only a few of these queries run at a time. Stops if the caller
 * disconnects.
 */
async function count(
  { system, environment, reply }: Pick<Call, 'system' | 'environment' | 'reply'>,
  segment: Segment,
) {
  const { log, reader } = system;
  const { signal } = abortWhenClosed(reply);
  const limits = { sample: SEGMENT_PREVIEW_USERS, timeoutMs: READ_TIMEOUT_MS, signal };
  const { users, sample } = await reader.inTurn(() =>
    previewSegment({ pool: reader.pool, log }, environment, segment, limits),
  );
  return { count: users, user_ids: sample };
}

const definitionBody = object('A definition that is not stored.', { definition: definitionField });

const previewDefinition = route({
  at: 'POST /v1/segments/preview',
  operationId: 'previewDefinition',
  summary: 'Preview a definition',
  description: `Returns the number of users whom a definition matches now, and some of them, all of one moment. Nothing is stored. Returns 503 if counting takes more than ${READ_TIMEOUT_MS / 1_000} seconds, and ends when the caller leaves.`,
  access: 'read',
  json: { schema: definitionBody, examples: { plan: { summary: 'By a property', value: { definition } } } },
  answer: { description: 'The preview.', schema: definitionPreview.ref },
  handle: async (call) => {
    const segment = requireDefinition(parseDefinition(call.body.definition));
    return { ...(await count(call, segment)), words: describeSegment(segment) };
  },
});

export const segmentRoutes: readonly Route[] = [create, show, change, remove, previewDefinition];
