import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { withExamples } from '../../api/schema.ts';
import { definitionPreview } from '../../api/segment.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { READ_TIMEOUT_MS, SEGMENT_PREVIEW_USERS } from '../../domain/limits.ts';
import { describeSegment } from '../../segments/describe-segment.ts';
import { previewSegment } from '../../segments/preview-segment.ts';
import { readSegment } from '../../segments/read-segment.ts';
import type { Segment } from '../../segments/segment.ts';
import { throwProblems } from '../../validation.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { refusals } from '../schemas/answers.ts';

const body = Type.Object(
  {
    definition: Type.Object(
      {},
      { additionalProperties: true, description: 'In the language of docs/segments.md.' },
    ),
  },
  { additionalProperties: false, description: 'A definition that is not stored.' },
);

const previewDefinitionSchema = {
  operationId: 'previewDefinition',
  summary: 'Preview a definition',
  description: `How many users a segment of this definition would have now, and some of them, of one moment. Nothing is stored: segments are defined in the definitions file. What cannot be counted within ${READ_TIMEOUT_MS / 1_000} seconds is 503.`,
  tags: ['reading'],
  body: {
    content: {
      'application/json': withExamples(body, {
        plan: {
          summary: 'By a property',
          value: { definition: { property: 'plan', in: ['pro', 'enterprise'] } },
        },
      }),
    },
  },
  response: {
    200: { description: 'The preview.', content: { 'application/json': { schema: definitionPreview.ref } } },
    ...refusals(
      'invalid_json',
      'missing_field',
      'invalid_field',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

export function previewDefinition(scope: FastifyInstance, { reader }: System): void {
  const options = { config: { scope: 'read' }, schema: previewDefinitionSchema } as const;
  scope.post('/v1/segments/preview', options, async (request, reply) => {
    const segment = readDefinition(readJsonObject(bodyBytes(request)));
    const { users, sample } = await reader.inTurn(() =>
      previewSegment(reader.db, environmentId(request), segment, {
        sample: SEGMENT_PREVIEW_USERS,
        timeoutMs: READ_TIMEOUT_MS,
      }),
    );
    const preview: Static<typeof definitionPreview.schema> = {
      count: users,
      user_ids: [...sample],
      words: describeSegment(segment),
    };
    return reply.send(preview);
  });
}

/** @throws InputError with every problem of the definition and its place. */
function readDefinition({ definition, ...others }: Readonly<Record<string, unknown>>): Segment {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw inputError('invalid_field', 'There is no such field', unknown.slice(0, 100));
  }
  if (definition === undefined) throw inputError('missing_field', 'definition is missing', 'definition');
  const { segment, problems } = readSegment(definition);
  if (segment !== null) return segment;
  throwProblems(
    problems.map(({ path, message }) => ({
      code: 'invalid_field',
      message: `${path} ${message}`,
      details: path,
    })),
  );
  throw inputError('invalid_field', 'The definition cannot be read', 'definition');
}
