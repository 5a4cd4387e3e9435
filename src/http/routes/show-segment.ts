import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { segmentDetail } from '../../api/segment.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { findSegmentItem } from '../../postgres/stores/segments.ts';
import { describeSegment } from '../../segments/describe-segment.ts';
import { readSegment } from '../../segments/read-segment.ts';
import { environmentId } from '../plugins/auth.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { noSuchSegment, segmentParameters } from './preview-segment.ts';

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
