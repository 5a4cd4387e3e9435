import { deletionPreview } from '../../api/deletion.ts';
import { jobRecord } from '../../api/job.ts';
import { withExamples } from '../../api/schema.ts';
import { requireQueueRoom } from '../../background-jobs/jobs.ts';
import { renderDeletion, requireDeletion } from '../../deletion/inspect-deletions.ts';
import { deletionBodies, readDeletionRequest, requestDeletion } from '../../deletion/request-deletion.ts';
import { type Entity, entities } from '../../domain/entity.ts';
import { previewDeletion } from '../../postgres/stores/deleted-profiles.ts';
import { findArchivedUntil } from '../../postgres/stores/events.ts';
import { callerOrigin } from '../plugins/auth.ts';
import { bodyBytes } from '../plugins/json-body.ts';
import { bodyHeaders, readIdempotency } from '../request-headers.ts';
import { type Route, route } from '../route.ts';

const texts = {
  users: {
    deletes: 'deleteUsers',
    previews: 'previewUserDeletion',
    what: 'Removes the profiles of the users, their events, and their data in refused records and stored files.',
    ids: ['u1', 'u2'],
  },
  companies: {
    deletes: 'deleteCompanies',
    previews: 'previewCompanyDeletion',
    what: 'Removes the profiles of the companies, detaches their users and events from them, and removes their data in refused records and stored files.',
    ids: ['acme', 'globex'],
  },
} as const satisfies Record<Entity, object>;

const contentOf = (entity: Entity) => ({
  'application/json': withExamples(deletionBodies[entity], {
    ids: { summary: 'Two of them', value: { [entity]: texts[entity].ids } },
  }),
});

const bodyRefusals = ['invalid_json', 'missing_field', 'invalid_field', 'upload_too_slow'] as const;
const sizeRefusals = ['payload_too_large', 'too_many_records', 'unsupported_media_type'] as const;

const deleteProfiles = (entity: Entity): Route =>
  route({
    at: `DELETE /v1/${entity}`,
    operationId: texts[entity].deletes,
    tag: 'deletions',
    summary: `Delete ${entity}`,
    description: `${texts[entity].what} Takes effect after all loads that were accepted earlier and before those accepted later. Later loads and single records may bring the IDs back. A deletion cannot be cancelled.`,
    access: 'delete',
    bodyKind: 'deletion',
    headers: bodyHeaders,
    content: contentOf(entity),
    answer: {
      status: 202,
      description: 'The deletion is accepted and runs in the background.',
      schema: jobRecord.ref,
    },
    refuses: [...bodyRefusals, 'idempotency_conflict', ...sizeRefusals],
    handle:
      (system) =>
      async ({ request, environment, base }) => {
        const body = bodyBytes(request);
        const idempotency = readIdempotency(request, body);
        const asked = readDeletionRequest(entity, body);
        await requireQueueRoom(system.db, environment, idempotency?.key ?? null, system.config.maxQueuedJobs);
        const jobId = await requestDeletion(system, environment, entity, asked, idempotency, {
          requestId: request.id,
          origin: callerOrigin(request),
        });
        return renderDeletion(await requireDeletion(system, environment, jobId), base());
      },
  });

const preview = (entity: Entity): Route =>
  route({
    at: `POST /v1/${entity}/deletion_preview`,
    operationId: texts[entity].previews,
    tag: 'deletions',
    summary: `Preview a deletion of ${entity}`,
    description:
      'Takes the body of a deletion and counts what it would remove now. Removes nothing. Data that comes or goes before the deletion runs is not included.',
    access: 'delete',
    bodyKind: 'deletion',
    content: contentOf(entity),
    answer: { description: 'The counts.', schema: deletionPreview.ref },
    refuses: [...bodyRefusals, ...sizeRefusals],
    handle:
      ({ reader }) =>
      async ({ request, environment }) => {
        const { ids } = readDeletionRequest(entity, bodyBytes(request));
        const [found, archived_until] = await Promise.all([
          reader.inTurn(() => previewDeletion(reader.db, entity, environment, ids)),
          findArchivedUntil(reader.db, environment),
        ]);
        const { profiles, unknown, events, users, isComplete } = found;
        const counts = { requested: ids.length, profiles, not_found: unknown, events, users };
        return { ...counts, is_complete: isComplete, archived_until };
      },
  });

export const deletionRoutes: readonly Route[] = entities.flatMap((entity) => [
  deleteProfiles(entity),
  preview(entity),
]);
