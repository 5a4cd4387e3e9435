import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import type { System } from '../../context.ts';
import { acceptAmendment, amendmentOptions, requireParent } from '../../load/amend/accept-amendment.ts';
import { renderLoad } from '../../load/render-load.ts';
import type { Parent } from '../../postgres/stores/amendments.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { baseUrl } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { optionFields } from '../plugins/validation.ts';
import { bodyHeaders } from '../request-headers.ts';
import { jobRefusals, withExamples } from '../schemas/answers.ts';
import { type JobRecord, jobIdOf, jobParameters, jobRecord } from '../schemas/job-record.ts';
import { csvBody, ndjsonBody } from '../upload/bodies.ts';
import { amendOptions, readAmendOptions } from '../upload/options.ts';
import { asAccepted, takeUpload } from '../upload/receive-upload.ts';
import type { UploadKind } from '../upload/upload.ts';
import { importKind } from './create-import.ts';

const form = withExamples(
  Type.Object(
    {
      ...amendOptions,
      file: Type.String({ format: 'binary', description: 'The mended records, as the download has them.' }),
    },
    { additionalProperties: false, description: 'A file, and options.' },
  ),
  {
    file: {
      summary: 'A file',
      value: { file: 'user_id,name,sluice_row\nu3,Grace,3\n' },
    },
  },
);

const amendJobSchema = {
  operationId: 'amendJob',
  summary: 'Amend a background job',
  description:
    'Takes refused records of a load back, mended: the CSV or NDJSON that `/rejects` gives, with `sluice_row` (`sluice_reject.row`) and the order as they are; records that are left out stay refused. A job of its own puts them at their place in the file: they yield to later records of the file and to what was written since, unless `wins=true`. As it completes, the counts of this job turn from `rejected` to `amended`. A refused record is mended once; of two who send it, one gets `already_amended`.',
  tags: ['jobs'],
  params: jobParameters,
  headers: Type.Object(bodyHeaders),
  querystring: optionFields(amendOptions),
  body: {
    content: {
      'multipart/form-data': form,
      'text/csv': csvBody,
      'application/x-ndjson': ndjsonBody,
    },
  },
  response: {
    202: {
      description: 'The job that puts the mended records in their place is queued.',
      content: { 'application/json': { schema: jobRecord.ref } },
    },
    ...jobRefusals(
      'invalid_json',
      'missing_field',
      'empty_file',
      'unrecognised_columns',
      'unsupported_format',
      'upload_too_slow',
      'idempotency_conflict',
      'job_not_amendable',
      'already_amended',
      'job_expired',
      'payload_too_large',
      'too_many_records',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

/** How mended records of a job are taken in; `said` has what the sender said last, of everything. */
function amendKind(parent: Parent, said: { wins: boolean }): UploadKind {
  const options = amendmentOptions(parent);
  return {
    ...importKind,
    takesUploads: false,
    defaultFilename: `mended ${parent.filename}`,
    readOptions(given) {
      const { wins, source, format, filename } = readAmendOptions(given);
      said.wins = wins;
      const load = { ...options, source: { ...options.source, ...source } };
      return { load, format, filename, uploadId: undefined, mapping: null };
    },
  };
}

/** Mended records, in a form or as the body itself. */
export function amendJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: amendJobSchema } as const;
  app.post('/v1/background_jobs/:job_id/amend', options, async (request, reply) => {
    const parent = await requireParent(system, environmentId(request), jobIdOf(request));
    const said = { wins: false };
    const taken = await takeUpload(system, request, amendKind(parent, said));
    const { environment, ...upload } = taken;
    const { jobId } = await acceptAmendment(system, {
      ...upload,
      environmentId: environment,
      parent,
      wins: said.wins,
      requestId: request.id,
    });
    const load = asAccepted(await requireLoad(system, environment, jobId));
    return reply
      .code(202)
      .send(renderLoad(load, baseUrl(request, system.config.publicUrl)) satisfies JobRecord);
  });
}
