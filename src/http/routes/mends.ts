import { Type } from 'typebox';
import { jobRecord } from '../../api/job.ts';
import { replacementPreview } from '../../api/reject.ts';
import { listOf, object, ordinal, record, text, withExamples } from '../../api/schema.ts';
import { requireQueueRoom } from '../../background-jobs/jobs.ts';
import { MAX_EDITED_RECORDS, MAX_REPLACEMENT_CHARS } from '../../domain/limits.ts';
import { readCauseId } from '../../domain/reject.ts';
import { acceptAmendment, amendmentOptions, requireParent } from '../../load/amend/accept-amendment.ts';
import { receiveEdits } from '../../load/amend/receive-edits.ts';
import { receiveMended } from '../../load/amend/receive-mended.ts';
import { countReplacement, renderSample } from '../../load/causes/list-causes.ts';
import { readMendId } from '../../load/causes/mend-ids.ts';
import type { Parent } from '../../postgres/stores/amendments.ts';
import { optional, worded } from '../../validation.ts';
import { abortWhenClosed } from '../gone-client.ts';
import {
  bodyHeaders,
  checked,
  flagParameter,
  idempotencyKeyOf,
  jobAction,
  jobParameters,
} from '../parameters.ts';
import { optionFields } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';
import { amendOptions, readAmendOptions } from '../upload/options.ts';
import { renderQueued, takeUpload } from '../upload/receive-upload.ts';
import { csvBody, ndjsonBody, type UploadKind } from '../upload/upload.ts';
import { importKind } from './imports.ts';

/* Refused records are mended by a file, by a proposal, or by edits. Each way makes a job of its own. */

const proposalBody = withExamples(
  object('A proposal to apply.', {
    apply: text('ID of a proposal, from the causes of the job.'),
    wins: amendOptions.wins,
  }),
  { proposal: { summary: 'A proposal', value: { apply: '05c8a1f0c2d3e-day-first' } } },
);

const form = withExamples(
  object('A file and options.', {
    ...amendOptions,
    file: Type.String({ format: 'binary', description: 'The mended records, in the form of the download.' }),
  }),
  { file: { summary: 'A file', value: { file: 'user_id,name,sluice_row\nu3,Grace,3\n' } } },
);

/** Says how mended records of a job are taken in. `said` gets what the sender said last. */
function amendKind(parent: Parent, said: { wins: boolean }): UploadKind {
  const options = amendmentOptions(parent);
  const defaultFilename = `mended ${parent.filename}`;
  return {
    ...importKind,
    named: {
      option: 'apply',
      async store({ system, signal }, environment, { load, filename = defaultFilename, named = '' }) {
        const received = await receiveMended(system, environment, parent, named, load, signal);
        return { received, filename, options: load };
      },
    },
    defaultFilename,
    readOptions(given) {
      const { apply, wins, source, format, filename } = readAmendOptions(given);
      if (apply !== undefined) readMendId(apply);
      said.wins = wins;
      const load = { ...options, source: { ...options.source, ...source } };
      return { load, format, filename, named: apply };
    },
  };
}

const queued = (description: string) => ({ status: 202, description, schema: jobRecord.ref });

const amend = route({
  at: 'POST /v1/background_jobs/:job_id/amend',
  operationId: 'amendJob',
  summary: 'Amend a background job',
  description:
    'Loads refused records of a load after they were mended. Send the CSV or NDJSON that `/rejects` returns, with `sluice_row` (`sluice_reject.row`) and the order unchanged; records that you leave out stay refused. Or apply a proposal from `/rejects?group_by=cause`: `{"apply": id}`. A separate job loads them as if they stood at the end of the file: whatever changed since that job ended wins over them, property by property, unless `wins=true`. 410 `job_expired`: not all these changes are kept any more (`CHANGES_DAYS`), so only `wins=true` is possible. When it completes, the counts of this job move from `rejected` to `amended`. A refused record is mended only once; if two requests send it, one gets `already_amended`.',
  access: 'import',
  bodyKind: 'form',
  params: jobParameters,
  headers: bodyHeaders,
  query: optionFields(amendOptions),
  content: {
    'multipart/form-data': form,
    'text/csv': csvBody,
    'application/x-ndjson': ndjsonBody,
    'application/json': proposalBody,
  },
  answer: queued('The job that loads the mended records is queued.'),
  refuses: [
    'empty_file',
    'unrecognised_columns',
    'unsupported_format',
    'job_not_amendable',
    'already_amended',
    'job_expired',
    'too_many_records',
  ],
  handle: async ({ system, request, params, environment, base }) => {
    const parent = await requireParent(system, environment, params.job_id);
    const said = { wins: false };
    const taken = await takeUpload(system, request, amendKind(parent, said));
    const { jobId } = await acceptAmendment(system, {
      ...taken,
      environmentId: environment,
      parent,
      ...said,
      requestId: request.id,
    });
    return renderQueued({ system, environment, base }, jobId);
  },
});

const editSays =
  'an edit has the row of a refused record, and either raw (a string) or values (an object of strings)';

const edit = worded(
  object('The new content of a refused record.', {
    row: ordinal('The `row` of the refused record.'),
    raw: Type.Optional(text('The whole record in the dialect of the file: one record of CSV or JSON.')),
    values: Type.Optional(
      record<string>({
        additionalProperties: Type.String(),
        description: 'CSV only: the cells to change, by column name. All others stay as they are written.',
      }),
    ),
  }),
  { says: { message: editSays }, whole: true },
);

const edits = object('Refused records, edited.', {
  records: worded(
    listOf('The edited records.', edit, { minItems: 1, maxItems: MAX_EDITED_RECORDS }),
    `records is a list of 1 to ${MAX_EDITED_RECORDS} edits`,
  ),
  wins: flagParameter(
    'wins',
    'The records take effect now instead of as of the end of the job that refused them.',
    { default: false },
  ),
});

const editRejects = route({
  at: 'POST /v1/background_jobs/:job_id/rejects/edits',
  operationId: 'editRejects',
  summary: 'Edit refused records of a background job',
  description:
    'Mends refused records cell by cell (`values`) or as text (`raw`), in any dialect; everything that is not edited stays as it is written. A separate job loads the records, as `/amend` does. A record that is refused again keeps its edit, with the new reason.',
  ...jobAction,
  json: {
    schema: edits,
    examples: {
      cell: { summary: 'A cell', value: { records: [{ row: 3, values: { user_id: 'u3' } }] } },
      line: {
        summary: 'A record whose cells cannot be told apart',
        value: { records: [{ row: 4, raw: 'u4,"Anna ""Ann"" Lee",pro,' }] },
      },
    },
  },
  answer: queued('The job that loads the edited records is queued.'),
  refuses: ['job_not_amendable', 'already_amended', 'job_expired'],
  handle: async ({ system, request, params, environment, base, body }) => {
    const { records, wins = false } = body;
    const idempotencyKey = idempotencyKeyOf(request);
    const parent = await requireParent(system, environment, params.job_id);
    await requireQueueRoom(system.db, environment, idempotencyKey, system.config.maxQueuedJobs);
    const { received, rows } = await receiveEdits(system, environment, parent, records);
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
    return renderQueued({ system, environment, base }, jobId);
  },
});

const replacementSays = `of a replacement, column is a name, find and by are texts of ${MAX_REPLACEMENT_CHARS} characters at most, and cause is the id of one`;

const replacementText = (description: string) =>
  optional(Type.String({ maxLength: MAX_REPLACEMENT_CHARS, default: '', description }), replacementSays);

const replacement = object('A replacement of text in one column of refused records.', {
  column: worded(text('Name of a column of the file.'), replacementSays),
  find: replacementText('Text to replace: a whole cell or part of one. Empty: fill the empty cells.'),
  by: replacementText('Replacement. `{row}` in it stands for the number of the record.'),
  cause: Type.Optional(
    checked(
      text('Only replace in records with this cause, by its `id`.'),
      (id) => readCauseId(id) !== null,
      replacementSays,
    ),
  ),
});

const previewReplacement = route({
  at: 'POST /v1/background_jobs/:job_id/rejects/replacement_preview',
  operationId: 'previewReplacement',
  summary: 'Preview a replacement in a column',
  description:
    'Replaces one text by another in a column of the refused records of a CSV load, and counts the records that a load would then accept. A record with fewer cells than columns has empty ones at its end. Nothing is changed: send the `id` of the answer to `/amend` as `apply` to do it.',
  access: 'import',
  params: jobParameters,
  json: {
    schema: replacement,
    examples: { empty: { summary: 'Cells that are empty', value: { column: 'user_id', by: 'u{row}' } } },
  },
  answer: { description: 'The preview.', schema: replacementPreview.ref },
  handle: async ({ system, reply, params, environment, body }) => {
    const { column, find = '', by = '', cause } = body;
    const { reader, sandboxes } = system;
    const { id, records, isComplete, samples } = await countReplacement(
      { ...reader, sandboxes },
      environment,
      params.job_id,
      { column, find, by, cause: cause === undefined ? null : readCauseId(cause) },
      abortWhenClosed(reply),
    );
    return { id, records, is_complete: isComplete, samples: samples.map(renderSample) };
  },
});

export const mendRoutes: readonly Route[] = [amend, editRejects, previewReplacement];
