import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { causePage, type RejectCausePage, type reject, rejectPage } from '../../api/reject.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { readCauseId } from '../../domain/cause.ts';
import { rejectColumns } from '../../domain/reject.ts';
import { listCauses } from '../../load/causes/list-causes.ts';
import { renderCauses } from '../../load/causes/render-causes.ts';
import { exportRejects, listRejects } from '../../load/rejects.ts';
import { renderReject } from '../../load/render-load.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { ruled, worded } from '../../validation.ts';
import { addRowsOfJob } from '../job-rows.ts';
import { rowPage } from '../page.ts';
import { listQuery } from '../plugins/validation.ts';
import { jobRefusals, named } from '../schemas/answers.ts';

import { jobParameters } from '../schemas/job-record.ts';

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
