import { MAX_INTEGER } from '../base/limits.ts';
import type { System } from '../context.ts';
import { type Entity, entities } from '../domain/entity.ts';
import { previewDeletion } from '../export/deleted-profile-store.ts';
import { callerOrigin } from '../http/caller.ts';
import { jobRecord } from '../http/job.ts';
import { answerRows, rowQuery } from '../http/job-rows.ts';
import { pageBytes } from '../http/page.ts';
import { bodyHeaders, jobParameters, readIdempotency } from '../http/parameters.ts';
import { bodyBytes } from '../http/plugins/json-body.ts';
import { renderJob } from '../http/render.ts';
import { type Route, route } from '../http/route.ts';
import { exampleText, withExamples } from '../http/schema.ts';
import { requireQueueRoom } from '../tasks/job-store.ts';
import { type DeletionPreview, deletionPreview, outcomePage } from './api.ts';
import {
  type DeletionRequests,
  deletionRequests,
  exportOutcomes,
  listOutcomes,
  renderOutcome,
  requestDeletion,
  requireDeletion,
} from './deletions.ts';
import type { DeletionOption } from './seam.ts';

const texts = {
  users: {
    deletes: 'deleteUsers',
    what: 'Removes the profiles of the users, their events, and their data in refused records and stored files.',
    ids: ['u1', 'u2'],
  },
  companies: {
    deletes: 'deleteCompanies',
    what: 'Removes the profiles of the companies, detaches their users and events from them, and removes their data in refused records and stored files.',
    ids: ['acme', 'globex'],
  },
} as const satisfies Record<Entity, object>;

const contentOf = (entity: Entity, { bodies }: DeletionRequests) => ({
  'application/json': withExamples(bodies[entity], {
    ids: { summary: 'Two of them', value: { [entity]: texts[entity].ids } },
  }),
});

const deleteProfiles = (entity: Entity, requests: DeletionRequests): Route =>
  route({
    at: `DELETE /v1/${entity}`,
    operationId: texts[entity].deletes,
    summary: `Delete ${entity}`,
    description: `${texts[entity].what} Takes effect after all loads that were accepted earlier and before those accepted later. Later loads and single records may bring the IDs back. A deletion cannot be cancelled. With \`dry_run\` the request only counts what a deletion would remove now.`,
    access: 'delete',
    bodyKind: 'deletion',
    headers: bodyHeaders,
    content: contentOf(entity, requests),
    answer: {
      status: 202,
      description: 'The deletion is accepted and runs in the background.',
      schema: jobRecord.ref,
    },
    answers: {
      200: {
        description:
          'With `dry_run`: the counts. Data that comes or goes before the deletion runs is not included.',
        content: { 'application/json': { schema: deletionPreview.ref } },
      },
    },
    refuses: ['too_many_records'],
    handle: async ({ system, request, reply, environment, base }) => {
      const body = bodyBytes(request);
      const idempotency = readIdempotency(request, body);
      const { dryRun, ...deletion } = requests.read(entity, body);
      if (dryRun) return reply.code(200).send(await preview(system, environment, entity, deletion.ids));
      await requireQueueRoom(system.db, environment, idempotency?.key ?? null, system.config.maxQueuedJobs);
      const jobId = await requestDeletion(system, environment, entity, deletion, idempotency, {
        requestId: request.id,
        origin: callerOrigin(request),
      });
      return renderJob(await requireDeletion(system, environment, jobId), base());
    },
  });

async function preview(
  { reader, deletions }: System,
  environment: number,
  entity: Entity,
  ids: readonly string[],
): Promise<DeletionPreview> {
  const [counts, ...moved] = await Promise.all([
    reader.inTurn(() => previewDeletion(reader.db, entity, environment, ids)),
    ...deletions.map((seam) => seam.findMovedUntil?.(reader.db, environment) ?? null),
  ]);
  const { profiles, unknown, events, users, isComplete } = counts;
  return {
    requested: ids.length,
    profiles,
    not_found: unknown,
    events,
    users,
    is_complete: isComplete,
    archived_until: moved.find((until) => until !== null) ?? null,
  };
}

const outcomes = route({
  at: 'GET /v1/background_jobs/:job_id/outcomes',
  operationId: 'listOutcomes',
  summary: 'List the outcomes of a deletion',
  description:
    'Returns the outcome of each ID: a page of them as JSON, or all of them as CSV or NDJSON, depending on `Accept`. JSON is the default.',
  access: 'read',
  config: pageBytes,
  params: jobParameters,
  query: rowQuery,
  answer: {
    description:
      'The outcomes, in the order of the request. `Link` comes with JSON, `Content-Disposition` with files.',
    headers: ['Link', 'Content-Disposition', 'Vary'],
    content: {
      'application/json': { schema: outcomePage.ref },
      'text/csv': exampleText(
        'The columns `id`, `outcome`, `events` and `users`.',
        'outcomes',
        'One ID',
        'id,outcome,events,users\nu1,deleted,3,0\n',
      ),
      'application/x-ndjson': exampleText(
        'The items of the JSON pages.',
        'outcomes',
        'One ID',
        '{"id":"u1","outcome":"deleted","events":3,"users":0}\n',
      ),
    },
  },
  prepare: (system) =>
    answerRows({
      name: 'outcomes',
      lastPosition: MAX_INTEGER,
      list: async (environmentId, jobId, page) => {
        const { outcomes, more, total } = await listOutcomes(system.reader, environmentId, jobId, page);
        const rows = outcomes.map((outcome) => ({ position: outcome.position, row: renderOutcome(outcome) }));
        return { rows, more, metadata: { total_count: total } };
      },
      requireJob: (...which) => requireDeletion(system.reader, ...which),
      export: (environmentId, jobId, format) => exportOutcomes(system, environmentId, jobId, format),
    }),
  handle: (call) => call.prepared(call),
});

export function deletionRoutes(options: readonly DeletionOption[]): readonly Route[] {
  const requests = deletionRequests(options);
  return [...entities.map((entity) => deleteProfiles(entity, requests)), outcomes];
}
