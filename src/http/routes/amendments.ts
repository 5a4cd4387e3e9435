import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { jobRecord } from '../../api/job.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { InputError, inputError } from '../../domain/errors.ts';
import { convertingStore } from '../../load/accept-load.ts';
import { acceptAmendment, amendmentOptions, requireParent } from '../../load/amend/accept-amendment.ts';
import { mendedRejects } from '../../load/causes/mended-rejects.ts';
import { readProposalId } from '../../load/causes/proposals.ts';
import { receive } from '../../load/receive/receive.ts';
import { renderLoad } from '../../load/render-load.ts';
import type { Parent } from '../../postgres/stores/amendments.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { baseUrl } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { optionFields } from '../plugins/validation.ts';
import { bodyHeaders } from '../request-headers.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { type JobRecord, jobIdOf, jobParameters } from '../schemas/job-record.ts';
import { csvBody, ndjsonBody } from '../upload/bodies.ts';
import { amendOptions, readAmendOptions, type UploadOptions } from '../upload/options.ts';
import { asAccepted, takeUpload } from '../upload/receive-upload.ts';
import { type Upload, type Uploaded, type UploadKind, uploadLimits } from '../upload/upload.ts';
import { importKind } from './imports.ts';

const proposal = withExamples(
  Type.Object(
    {
      apply: Type.String({ description: 'The id of a proposal, from the causes of the job.' }),
      wins: amendOptions.wins,
    },
    { additionalProperties: false, description: 'What mends the records of a cause.' },
  ),
  { proposal: { summary: 'A proposal', value: { apply: '05c8a1f0c2d3e-day-first' } } },
);

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
    'Takes refused records of a load back, mended: the CSV or NDJSON that `/rejects` gives, with `sluice_row` (`sluice_reject.row`) and the order as they are; records that are left out stay refused. Or applies a proposal from `/rejects?group_by=cause`: `{"apply": id}`. A job of its own puts them at their place in the file: they yield to later records of the file and to what was written since, unless `wins=true`. As it completes, the counts of this job turn from `rejected` to `amended`. A refused record is mended once; of two who send it, one gets `already_amended`.',
  tags: ['jobs'],
  params: jobParameters,
  headers: Type.Object(bodyHeaders),
  querystring: optionFields(amendOptions),
  body: {
    content: {
      'multipart/form-data': form,
      'text/csv': csvBody,
      'application/x-ndjson': ndjsonBody,
      'application/json': proposal,
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
    named: { option: 'apply', store: (...upload) => storeMended(parent, ...upload) },
    defaultFilename: `mended ${parent.filename}`,
    readOptions(given) {
      const { apply, wins, source, format, filename } = readAmendOptions(given);
      if (apply !== undefined) readProposalId(apply);
      said.wins = wins;
      const load = { ...options, source: { ...options.source, ...source } };
      return { load, format, filename, named: apply, mapping: null };
    },
  };
}

/** The refused records of a cause, as a proposal mends them. */
async function storeMended(
  { jobId, fileFormat, header }: Parent,
  { system, kind, signal }: Upload,
  environment: number,
  { load, filename = kind.defaultFilename, named = '', mapping }: UploadOptions,
): Promise<Uploaded> {
  const { source, map } = load;
  // We write it: nothing of it is to be found out, whatever stands in its cells.
  const written = header === null ? source : { ...source, encoding: 'utf-8', delimiter: header.delimiter };
  const hints = { filename, format: fileFormat, source: written, map, chunkBytes: system.config.chunkBytes };
  // Nobody sends it.
  const limits = { ...uploadLimits(system.config), minBytesPerSecond: 0 };
  const mended = mendedRejects(system, environment, jobId, named, signal);
  try {
    const received = await receive(mended, convertingStore(system, environment), hints, limits, signal);
    return { received, filename, options: load, mapping };
  } catch (error) {
    if (!(error instanceof InputError) || error.problems[0].code !== 'empty_file') throw error;
    const message = 'no refused record is left that this proposal mends';
    throw inputError('already_amended', message, `job_id: ${jobId}`);
  }
}

/** Mended records, in a form or as the body itself; or what a proposal makes of refused ones. */
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
