import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { replacementPreview } from '../../api/reject.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { readCauseId } from '../../domain/cause.ts';
import { MAX_REPLACEMENT_CHARS } from '../../domain/limits.ts';
import { countReplacement } from '../../load/causes/mended-rejects.ts';
import { renderSample } from '../../load/causes/render-causes.ts';
import { compileSchema, ruled, throwProblems, worded } from '../../validation.ts';
import { onceClosed, wentAway } from '../gone-client.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { jobIdOf, jobParameters } from '../schemas/job-record.ts';

const says = `of a replacement, column is a name, find and by are texts of ${MAX_REPLACEMENT_CHARS} characters at most, and cause is the id of one`;

const text = (description: string) =>
  Type.Optional(worded(Type.String({ maxLength: MAX_REPLACEMENT_CHARS, default: '', description }), says));

const replacement = worded(
  Type.Object(
    {
      column: worded(Type.String({ description: 'A column of the file, by its name.' }), says),
      find: text('What stands there, all of a cell or a part. Empty: cells with nothing in them are filled.'),
      by: text('What is to stand there. `{row}` in it stands for the number of the record.'),
      cause: Type.Optional(
        worded(
          ruled(Type.String({ description: 'Only in records of this cause, by its `id`.' }), (id) =>
            readCauseId(id) === null ? says : null,
          ),
          says,
        ),
      ),
    },
    { additionalProperties: false, description: 'One text by another, in a column of refused records.' },
  ),
  { unknown: (name) => `${JSON.stringify(name.slice(0, 100))} is nothing that a replacement asks for` },
);

const findProblems = compileSchema(replacement);

const previewReplacementSchema = {
  operationId: 'previewReplacement',
  summary: 'Count what a replacement in a column would mend',
  description:
    'Goes through the refused records of a load of CSV and replaces one text by another in a column; a record with fewer cells than columns has empty ones at its end. Counts those that a load would take then, and changes nothing: the `id` of the answer, sent to `/amend` as `apply`, does it.',
  tags: ['jobs'],
  params: jobParameters,
  body: {
    content: {
      'application/json': withExamples(replacement, {
        empty: { summary: 'Cells that are empty', value: { column: 'user_id', by: 'u{row}' } },
      }),
    },
  },
  response: {
    200: {
      description: 'The number.',
      content: { 'application/json': { schema: replacementPreview.ref } },
    },
    ...jobRefusals(
      'invalid_json',
      'missing_field',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

/** In a scope with `addJsonBody`. */
export function previewReplacement(scope: FastifyInstance, { reader, sandboxes }: System): void {
  const options = { config: { scope: 'import' }, schema: previewReplacementSchema } as const;
  const path = '/v1/background_jobs/:job_id/rejects/replacement_preview';
  scope.post(path, options, async (request, reply) => {
    const given = readJsonObject(bodyBytes(request));
    throwProblems(findProblems(given));
    const { column, find = '', by = '', cause } = given as Static<typeof replacement>;
    const gone = new AbortController();
    onceClosed(reply, () => gone.abort(wentAway()));
    const { id, records, isComplete, samples } = await countReplacement(
      { ...reader, sandboxes },
      environmentId(request),
      jobIdOf(request),
      { column, find, by, cause: cause === undefined ? null : readCauseId(cause) },
      gone,
    );
    const answer: Static<typeof replacementPreview.schema> = {
      id,
      records,
      is_complete: isComplete,
      samples: samples.map(renderSample),
    };
    return reply.send(answer);
  });
}
