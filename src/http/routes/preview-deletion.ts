import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { deletionBodies, readDeletionRequest } from '../../deletion/request-deletion.ts';
import type { Entity } from '../../domain/entity.ts';
import { MAX_PREVIEWED_ROWS } from '../../domain/limits.ts';
import { previewDeletion } from '../../postgres/stores/deleted-profiles.ts';
import { findArchivedUntil } from '../../postgres/stores/events.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes } from '../plugins/json-body.ts';
import { component, orNull, refusals, withExamples } from '../schemas/answers.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });

export const deletionPreview = component(
  'DeletionPreview',
  Type.Object(
    {
      requested: count('Ids that were given, each once.'),
      profiles: count('Profiles that would be removed.'),
      not_found: count('Ids of which there is nothing.'),
      events: count(
        `Of users: their events, which would be removed. Of companies: events that would no longer name them. ${MAX_PREVIEWED_ROWS} at most.`,
      ),
      users: count(
        `Of companies: users who would no longer belong to one, ${MAX_PREVIEWED_ROWS} at most; of users 0.`,
      ),
      is_complete: Type.Boolean({ description: 'No number has met its bound.' }),
      archived_until: orNull(
        Type.String({
          format: 'date-time',
          description:
            'Events of the environment before this may have been moved to archives: a deletion removes them there, and they are not counted here. Null: none have.',
          examples: [null],
        }),
      ),
    },
    {
      additionalProperties: false,
      description: 'What a deletion would meet, as things stand.',
      examples: [
        {
          requested: 2,
          profiles: 1,
          not_found: 1,
          events: 4120,
          users: 0,
          is_complete: true,
          archived_until: null,
        },
      ],
    },
  ),
);

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
