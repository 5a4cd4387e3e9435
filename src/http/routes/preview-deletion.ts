import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { deletionPreview } from '../../api/deletion.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { deletionBodies, readDeletionRequest } from '../../deletion/request-deletion.ts';
import type { Entity } from '../../domain/entity.ts';
import { previewDeletion } from '../../postgres/stores/deleted-profiles.ts';
import { findArchivedUntil } from '../../postgres/stores/events.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes } from '../plugins/json-body.ts';
import { refusals } from '../schemas/answers.ts';

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
