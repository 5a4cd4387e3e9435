import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { findSegmentItem } from '../../postgres/stores/segments.ts';
import { describeSegment } from '../../segments/describe-segment.ts';
import { readSegment } from '../../segments/read-segment.ts';
import { environmentId } from '../plugins/auth.ts';
import { component, jobRefusals } from '../schemas/answers.ts';
import { segmentItem } from './list-segments.ts';
import { noSuchSegment, segmentParameters } from './preview-segment.ts';

const line = Type.Object(
  {
    depth: Type.Integer({ minimum: 0, description: 'How many groups it stands in.' }),
    text: Type.String({ description: 'A group, or a condition.' }),
  },
  { additionalProperties: false },
);

export const definitionWords = Type.Array(line, {
  description: 'The definition in words: a line for each group and condition, in their order.',
});

const { properties } = segmentItem.schema;

export const segmentDetail = component(
  'SegmentDetail',
  Type.Object(
    {
      ...properties,
      key: Type.String({ description: 'Its name in the definitions file.' }),
      definition: Type.Object(
        {},
        {
          additionalProperties: true,
          description: 'As it stands in the definitions file: docs/segments.md.',
        },
      ),
      words: definitionWords,
    },
    {
      additionalProperties: false,
      description: 'A segment with its definition.',
      examples: [
        {
          id: 3,
          title: 'Power users',
          usage: 'analytics',
          category: 'Engagement',
          is_hidden: false,
          is_protected: true,
          status: 'active',
          key: 'power-users',
          definition: { event: 'report_exported', at_least: 3 },
          words: [{ depth: 0, text: 'did at least 3 times "report_exported"' }],
        },
      ],
    },
  ),
);

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
