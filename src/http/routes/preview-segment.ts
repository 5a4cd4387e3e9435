import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { segmentPreview } from '../../api/segment.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { READ_TIMEOUT_MS, SEGMENT_PREVIEW_USERS } from '../../domain/limits.ts';
import { findSegment } from '../../profiles/find-segment.ts';
import { previewSegment } from '../../segments/preview-segment.ts';
import { worded } from '../../validation.ts';
import { environmentId } from '../plugins/auth.ts';
import { jobRefusals } from '../schemas/answers.ts';

export const noSuchSegment = 'there is no such segment';

export const segmentParameters = Type.Object({
  segment_id: worded(
    Type.String({
      pattern: '^[0-9]{1,10}$',
      description: 'Its id in the lookup of segments.',
      examples: ['3'],
    }),
    { says: { code: 'not_found', message: noSuchSegment, details: 'segment_id' } },
  ),
});

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
