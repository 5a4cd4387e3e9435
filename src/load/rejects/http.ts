import { Type } from 'typebox';
import type { System } from '../../context.ts';
import { readCauseId, rejectColumns } from '../../domain/reject.ts';
import { exampleJobId } from '../../http/job.ts';
import { answerRows } from '../../http/job-rows.ts';
import { pageBytes, rowPage } from '../../http/page.ts';
import { checked, jobParameters, optionalChoice } from '../../http/parameters.ts';
import { lenientQuery } from '../../http/plugins/validation.ts';
import { type Route, route } from '../../http/route.ts';
import { exampleText, text } from '../../http/schema.ts';
import { requireLoad } from '../read-store.ts';
import { renderReject } from '../render-load.ts';
import { causePage, rejectPage } from './api.ts';
import { listCauses, renderCauses } from './list-causes.ts';
import { exportRejects, listRejects } from './rejects.ts';

const added = rejectColumns.map((column) => `\`${column}\``).join(', ');

const csvExample = `user_id,name,${rejectColumns.join(',')}
,Nobody,${exampleJobId},3,4,missing_id,user_id is missing,user_id,,
`;

const ndjsonExample = `{"name":"Nobody","sluice_job":"${exampleJobId}","sluice_row":3,"sluice_line":3,"sluice_error_code":"missing_id","sluice_message":"user_id is missing","sluice_column":"user_id"}\n`;

const query = lenientQuery({
  ...rowPage,
  cause: Type.Optional(
    checked(
      text('Only return records with this cause, by its `id`.'),
      (text) => readCauseId(text) !== null,
      'cause is the id of one, from group_by=cause',
    ),
  ),
  group_by: optionalChoice(
    ['cause'],
    'group_by is cause',
    '`cause`: returns the causes of the refusals, with counts and samples, instead of the records.',
  ),
  format: optionalChoice(
    ['csv', 'ndjson'],
    'format is csv or ndjson',
    'Returns all rejects as a file and ignores `Accept`. For use in links.',
  ),
});

function causeOf({ cause }: { readonly cause?: string }): number | null {
  return cause === undefined ? null : readCauseId(cause);
}

const rowsOf = ({ reader, ...system }: System) => {
  const where = { ...reader, sandboxes: system.sandboxes };
  return answerRows({
    name: 'rejects',
    lastPosition: Number.MAX_SAFE_INTEGER,
    list: async (environmentId, jobId, page, query) => {
      const filter = { ...page, cause: causeOf(query) };
      const rejects = await listRejects(where, environmentId, jobId, filter);
      const rows = rejects.rejects.map((reject) => ({ position: reject.row, row: renderReject(reject) }));
      const metadata = { total_count: rejects.total, columns: rejects.columns };
      return { rows, more: rejects.next !== null, metadata };
    },
    requireJob: (...which) => requireLoad(reader, ...which),
    export: (environmentId, jobId, format, query) =>
      exportRejects(system, environmentId, jobId, format, causeOf(query)),
    summary: async (environmentId, jobId, { group_by }) => {
      if (group_by === undefined) return null;
      return renderCauses(await listCauses(where, environmentId, jobId));
    },
  });
};

const listRejectsRoute = route({
  at: 'GET /v1/background_jobs/:job_id/rejects',
  operationId: 'listRejects',
  summary: 'List the refused records of a job',
  description:
    'Returns a page of them as JSON, or all of them as CSV or NDJSON, depending on `Accept`; JSON is the default. The files have the shape of the source with the reasons added, to be corrected and loaded. With `group_by=cause`, returns the causes as JSON.',
  access: 'read',
  config: pageBytes,
  params: jobParameters,
  query,
  answer: {
    description:
      'The refused records, in file order. `Link` comes with JSON, `Content-Disposition` with files.',
    headers: ['Link', 'Content-Disposition', 'Vary'],
    content: {
      'application/json': { schema: Type.Unsafe({ anyOf: [rejectPage.ref, causePage.ref] }) },
      'text/csv': exampleText(
        `The columns of the source, and ${added}.`,
        'rejects',
        'One record',
        csvExample,
      ),
      'application/x-ndjson': exampleText(
        'The records, with the same keys added to each.',
        'rejects',
        'One record',
        ndjsonExample,
      ),
    },
  },
  prepare: rowsOf,
  handle: (call) => call.prepared(call),
});

export const rejectRoutes: readonly Route[] = [listRejectsRoute];
