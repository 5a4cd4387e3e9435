import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { jobRecord } from '../../api/job.ts';
import {
  causePage,
  type RejectCausePage,
  type reject,
  rejectPage,
  replacementPreview,
} from '../../api/reject.ts';
import { withExamples } from '../../api/schema.ts';
import { requireQueueRoom } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { MAX_EDITED_RECORDS, MAX_REPLACEMENT_CHARS } from '../../domain/limits.ts';
import { readCauseId, rejectColumns } from '../../domain/reject.ts';
import { acceptAmendment, amendmentOptions, requireParent } from '../../load/amend/accept-amendment.ts';
import { receiveEdits } from '../../load/amend/receive-edits.ts';
import { listCauses } from '../../load/causes/list-causes.ts';
import { countReplacement } from '../../load/causes/mended-rejects.ts';
import { renderCauses, renderSample } from '../../load/causes/render-causes.ts';
import { exportRejects, listRejects } from '../../load/rejects.ts';
import { renderLoad, renderReject } from '../../load/render-load.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { compileSchema, ruled, throwProblems, worded } from '../../validation.ts';
import { onceClosed, wentAway } from '../gone-client.ts';
import { addRowsOfJob } from '../job-rows.ts';
import { baseUrl, rowPage } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { listQuery } from '../plugins/validation.ts';
import { actionHeaders, idempotencyKeyOf } from '../request-headers.ts';
import { jobRefusals, named } from '../schemas/answers.ts';
import { type JobRecord, jobIdOf, jobParameters } from '../schemas/job-record.ts';
import { asAccepted } from '../upload/receive-upload.ts';

const notACause = 'cause is the id of one, from group_by=cause';

type RejectRecord = Static<typeof reject.schema>;

const added = rejectColumns.map((column) => `\`${column}\``).join(', ');

const csvExample = `user_id,name,${rejectColumns.join(',')}
,Nobody,3,4,missing_id,user_id is empty,user_id,",Nobody",
`;

const ndjsonExample =
  '{"name":"Nobody","sluice_reject":{"row":3,"line":3,"byte_offset":83,"column":"user_id","error_code":"missing_id","message":"user_id is missing"}}\n';

const rejectQuery = listQuery({
  ...rowPage,
  cause: Type.Optional(
    worded(
      ruled(Type.String({ description: 'Only records of this cause, by its `id`.' }), (text) =>
        readCauseId(text) === null ? notACause : null,
      ),
      notACause,
    ),
  ),
  group_by: Type.Optional(
    worded(
      Type.Enum(['cause'], {
        type: 'string',
        description:
          '`cause`: not the records, but why they were refused, counted, and what would mend them.',
      }),
      'group_by is cause',
    ),
  ),
  format: Type.Optional(
    worded(
      Type.Enum(['csv', 'ndjson'], {
        type: 'string',
        description: 'Returns all of them as a file, whatever `Accept` says. For use in links.',
      }),
      'format is csv or ndjson',
    ),
  ),
});

const listRejectsSchema = {
  operationId: 'listRejects',
  summary: 'List the refused records of a job',
  description:
    'By `Accept`: a page of them as JSON (also where nothing else is wanted), or all of them as CSV or NDJSON, in the shape of the source with the reasons added, to mend and send again. With `group_by=cause`, why they were refused as JSON.',
  tags: ['jobs'],
  params: jobParameters,
  querystring: rejectQuery,
  response: {
    200: {
      description:
        'The refused records, in file order. `Link` comes with JSON, `Content-Disposition` with files.',
      headers: named('Link', 'Content-Disposition', 'Vary'),
      content: {
        'application/json': { schema: Type.Unsafe({ anyOf: [rejectPage.ref, causePage.ref] }) },
        'text/csv': withExamples(Type.String({ description: `The columns of the source, and ${added}.` }), {
          rejects: { summary: 'One record', value: csvExample },
        }),
        'application/x-ndjson': withExamples(
          Type.String({ description: 'The records, with the key `sluice_reject` added to each.' }),
          { rejects: { summary: 'One record', value: ndjsonExample } },
        ),
      },
    },
    ...jobRefusals('invalid_cursor'),
  },
} satisfies FastifySchema;

/** The refused records of a load, as a file to mend and send again too. */
export function listRejectsOfJob(app: FastifyInstance, system: System): void {
  addRowsOfJob(app, system, {
    name: 'rejects',
    schema: listRejectsSchema,
    lastPosition: Number.MAX_SAFE_INTEGER,
    list: async (environmentId, jobId, page, query) => {
      const filter = { ...page, cause: causeOf(query) };
      const { rejects, more, total, columns } = await listRejects(
        system.reader,
        environmentId,
        jobId,
        filter,
      );
      const rows = rejects.map((reject) => ({
        position: reject.row,
        row: renderReject(reject) satisfies RejectRecord,
      }));
      return { rows, more, metadata: { total_count: total, columns } };
    },
    requireJob: (...which) => requireLoad(system.reader, ...which),
    export: (environmentId, jobId, format, query) =>
      exportRejects(system, environmentId, jobId, format, causeOf(query)),
    summary: async (environmentId, jobId, { group_by }) => {
      if (group_by === undefined) return null;
      return renderCauses(
        await listCauses({ ...system.reader, sandboxes: system.sandboxes }, environmentId, jobId),
      ) satisfies RejectCausePage;
    },
  });
}

function causeOf({ cause }: { readonly cause?: string }): number | null {
  return cause === undefined ? null : readCauseId(cause);
}

const editSays =
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
  { says: { message: editSays }, whole: true },
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

const findEditProblems = compileSchema(edits);

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
    throwProblems(findEditProblems(given));
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

const replacementSays = `of a replacement, column is a name, find and by are texts of ${MAX_REPLACEMENT_CHARS} characters at most, and cause is the id of one`;

const text = (description: string) =>
  Type.Optional(
    worded(Type.String({ maxLength: MAX_REPLACEMENT_CHARS, default: '', description }), replacementSays),
  );

const replacement = worded(
  Type.Object(
    {
      column: worded(Type.String({ description: 'A column of the file, by its name.' }), replacementSays),
      find: text('What stands there, all of a cell or a part. Empty: cells with nothing in them are filled.'),
      by: text('What is to stand there. `{row}` in it stands for the number of the record.'),
      cause: Type.Optional(
        worded(
          ruled(Type.String({ description: 'Only in records of this cause, by its `id`.' }), (id) =>
            readCauseId(id) === null ? replacementSays : null,
          ),
          replacementSays,
        ),
      ),
    },
    { additionalProperties: false, description: 'One text by another, in a column of refused records.' },
  ),
  { unknown: (name) => `${JSON.stringify(name.slice(0, 100))} is nothing that a replacement asks for` },
);

const findReplacementProblems = compileSchema(replacement);

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
    throwProblems(findReplacementProblems(given));
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
