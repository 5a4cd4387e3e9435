import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { deletionPreview } from '../../api/deletion.ts';
import { jobRecord } from '../../api/job.ts';
import { withExamples } from '../../api/schema.ts';
import { requireQueueRoom } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { renderDeletion, requireDeletion } from '../../deletion/inspect-deletions.ts';
import { deletionBodies, readDeletionRequest, requestDeletion } from '../../deletion/request-deletion.ts';
import type { Entity } from '../../domain/entity.ts';
import { previewDeletion } from '../../postgres/stores/deleted-profiles.ts';
import { findArchivedUntil } from '../../postgres/stores/events.ts';
import { baseUrl } from '../page.ts';
import { callerOrigin, environmentId } from '../plugins/auth.ts';
import { bodyBytes } from '../plugins/json-body.ts';
import { bodyHeaders, readIdempotency } from '../request-headers.ts';
import { refusals } from '../schemas/answers.ts';
import type { JobRecord } from '../schemas/job-record.ts';

const what = {
  users:
    'Removes the profiles of the users, their events, and what is kept of them in refused records and received files.',
  companies:
    'Removes the profiles of the companies, takes them from their users and from events, and removes what is kept of them in refused records and received files.',
} as const satisfies Record<Entity, string>;

const deleteProfilesSchema = (entity: Entity) =>
  ({
    operationId: entity === 'users' ? 'deleteUsers' : 'deleteCompanies',
    summary: `Delete ${entity}`,
    description: `${what[entity]} It takes effect after all loads accepted before it, and before those accepted after: these may bring the ids back, as may single records that come later. It cannot be cancelled.`,
    tags: ['deletions'],
    headers: Type.Object(bodyHeaders),
    body: {
      content: {
        'application/json': withExamples(deletionBodies[entity], {
          ids: {
            summary: 'Two of them',
            value: { [entity]: entity === 'users' ? ['u1', 'u2'] : ['acme', 'globex'] },
          },
        }),
      },
    },
    response: {
      202: {
        description: 'It is accepted, and runs in the background.',
        content: { 'application/json': { schema: jobRecord.ref } },
      },
      ...refusals(
        'invalid_json',
        'missing_field',
        'invalid_field',
        'upload_too_slow',
        'idempotency_conflict',
        'payload_too_large',
        'too_many_records',
        'unsupported_media_type',
      ),
    },
  }) satisfies FastifySchema;

export function deleteProfilesRoute(scope: FastifyInstance, system: System, entity: Entity): void {
  const options = { config: { scope: 'delete' }, schema: deleteProfilesSchema(entity) } as const;
  scope.delete(`/v1/${entity}`, options, async (request, reply) => {
    const environment = environmentId(request);
    const body = bodyBytes(request);
    const idempotency = readIdempotency(request, body);
    const asked = readDeletionRequest(entity, body);
    await requireQueueRoom(system.db, environment, idempotency?.key ?? null, system.config.maxQueuedJobs);
    const jobId = await requestDeletion(system, environment, entity, asked, idempotency, {
      requestId: request.id,
      origin: callerOrigin(request),
    });
    const found = await requireDeletion(system, environment, jobId);
    return reply
      .code(202)
      .send(renderDeletion(found, baseUrl(request, system.config.publicUrl)) satisfies JobRecord);
  });
}

const previewDeletionSchema = (entity: Entity) =>
  ({
    operationId: entity === 'users' ? 'previewUserDeletion' : 'previewCompanyDeletion',
    summary: `Count what a deletion of ${entity} would remove`,
    description:
      'Takes the body of the deletion and removes nothing. What comes or goes until the deletion runs is not in it.',
    tags: ['deletions'],
    body: {
      content: {
        'application/json': withExamples(deletionBodies[entity], {
          ids: {
            summary: 'Two of them',
            value: { [entity]: entity === 'users' ? ['u1', 'u2'] : ['acme', 'globex'] },
          },
        }),
      },
    },
    response: {
      200: { description: 'The numbers.', content: { 'application/json': { schema: deletionPreview.ref } } },
      ...refusals(
        'invalid_json',
        'missing_field',
        'invalid_field',
        'upload_too_slow',
        'payload_too_large',
        'too_many_records',
        'unsupported_media_type',
      ),
    },
  }) satisfies FastifySchema;

export function previewDeletionRoute(scope: FastifyInstance, { reader }: System, entity: Entity): void {
  const options = { config: { scope: 'delete' }, schema: previewDeletionSchema(entity) } as const;
  scope.post(`/v1/${entity}/deletion_preview`, options, async (request, reply) => {
    const environment = environmentId(request);
    const { ids } = readDeletionRequest(entity, bodyBytes(request));
    const [found, archived_until] = await Promise.all([
      reader.inTurn(() => previewDeletion(reader.db, entity, environment, ids)),
      findArchivedUntil(reader.db, environment),
    ]);
    const answer: Static<typeof deletionPreview.schema> = {
      requested: ids.length,
      profiles: found.profiles,
      not_found: found.unknown,
      events: found.events,
      users: found.users,
      is_complete: found.isComplete,
      archived_until,
    };
    return reply.send(answer);
  });
}
