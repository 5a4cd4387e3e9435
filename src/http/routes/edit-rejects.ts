import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { jobRecord } from '../../api/job.ts';
import { withExamples } from '../../api/schema.ts';
import { requireQueueRoom } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { MAX_EDITED_RECORDS } from '../../domain/limits.ts';
import { acceptAmendment, amendmentOptions, requireParent } from '../../load/amend/accept-amendment.ts';
import { receiveEdits } from '../../load/amend/receive-edits.ts';
import { renderLoad } from '../../load/render-load.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { compileSchema, throwProblems, worded } from '../../validation.ts';
import { baseUrl } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { actionHeaders, idempotencyKeyOf } from '../request-headers.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { type JobRecord, jobIdOf, jobParameters } from '../schemas/job-record.ts';
import { asAccepted } from '../upload/receive-upload.ts';

const says =
  'an edit has the row of a refused record, and either raw (a string) or values (an object of strings)';

const edit = worded(
  Type.Object(
    {
      row: Type.Integer({ minimum: 1, description: 'The `row` of the refused record.' }),
      raw: Type.Optional(
        Type.String({
          description: 'The whole record in the dialect of the file: one record of CSV or JSON.',
        }),
      ),
      values: Type.Optional(
        Type.Unsafe<Readonly<Record<string, string>>>({
          type: 'object',
          additionalProperties: { type: 'string' },
          description: 'CSV only: the cells to change, by column name. All others stay as they are written.',
        }),
      ),
    },
    { additionalProperties: false, description: 'The new content of a refused record.' },
  ),
  { says: { message: says }, whole: true },
);

const edits = worded(
  Type.Object(
    {
      records: worded(
        Type.Array(edit, { minItems: 1, maxItems: MAX_EDITED_RECORDS, description: 'The edited records.' }),
        `records is a list of 1 to ${MAX_EDITED_RECORDS} edits`,
      ),
      wins: Type.Optional(
        worded(
          Type.Boolean({
            default: false,
            description: 'The records take effect now instead of at their place in the file.',
          }),
          'wins must be true or false',
        ),
      ),
    },
    { additionalProperties: false, description: 'Refused records, edited.' },
  ),
  { unknown: (name) => `${JSON.stringify(name.slice(0, 100))} is not a field of an edit` },
);

const findProblems = compileSchema(edits);

const editRejectsSchema = {
  operationId: 'editRejects',
  summary: 'Edit refused records of a background job',
  description:
    'Mends refused records cell by cell (`values`) or as text (`raw`), in any dialect; everything that is not edited stays as it is written. A separate job puts the records at their place in the file, as `/amend` does. A record that is refused again keeps its edit, with the new reason.',
  tags: ['jobs'],
  params: jobParameters,
  headers: Type.Object(actionHeaders),
  body: {
    content: {
      'application/json': withExamples(edits, {
        cell: { summary: 'A cell', value: { records: [{ row: 3, values: { user_id: 'u3' } }] } },
        line: {
          summary: 'A record whose cells cannot be told apart',
          value: { records: [{ row: 4, raw: 'u4,"Anna ""Ann"" Lee",pro,' }] },
        },
      }),
    },
  },
  response: {
    202: {
      description: 'The job that puts the edited records in their place is queued.',
      content: { 'application/json': { schema: jobRecord.ref } },
    },
    ...jobRefusals(
      'invalid_json',
      'missing_field',
      'unsupported_media_type',
      'payload_too_large',
      'upload_too_slow',
      'idempotency_conflict',
      'job_not_amendable',
      'already_amended',
      'job_expired',
    ),
  },
} satisfies FastifySchema;

/** Adds the route to a scope with `addJsonBody`. */
export function editRejects(scope: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: editRejectsSchema } as const;
  scope.post('/v1/background_jobs/:job_id/rejects/edits', options, async (request, reply) => {
    const given = readJsonObject(bodyBytes(request));
    throwProblems(findProblems(given));
    const { records, wins = false } = given as Static<typeof edits>;
    const environment = environmentId(request);
    const idempotencyKey = idempotencyKeyOf(request);
    const parent = await requireParent(system, environment, jobIdOf(request));
    await requireQueueRoom(system.db, environment, idempotencyKey, system.config.maxQueuedJobs);
    const { received, rows } = await receiveEdits(system, parent, records);
    const { jobId } = await acceptAmendment(system, {
      environmentId: environment,
      parent,
      filename: `mended ${parent.filename}`,
      received,
      rows,
      options: { ...amendmentOptions(parent), source: {} },
      wins,
      idempotencyKey,
      requestId: request.id,
    });
    const load = asAccepted(await requireLoad(system, environment, jobId));
    return reply
      .code(202)
      .send(renderLoad(load, baseUrl(request, system.config.publicUrl)) satisfies JobRecord);
  });
}
