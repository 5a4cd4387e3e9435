import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { userSegments } from '../../api/segment.ts';
import type { System } from '../../context.ts';
import { readProfile } from '../../postgres/stores/profiles.ts';
import { findSegmentsOf } from '../../profiles/find-segments-of.ts';
import { environmentId } from '../plugins/auth.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { noSuchProfile, userParameters } from './show-profile.ts';

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
