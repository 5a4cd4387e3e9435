/** The same program as fetch-program.ts, but with the client that @hey-api/openapi-ts generates. */
import {
  createExport,
  createImport,
  identifyUser,
  listExports,
  listRejects,
  listUserProperties,
  showExport,
  showJob,
  trackEvent,
} from './openapi-ts';
import { client } from './openapi-ts/client.gen';
import { event, person, readIds, unknownJob, until, users } from './shared';

const { SLUICE_URL: baseUrl = '', SLUICE_API_KEY: key = '' } = process.env;
client.setConfig({ baseUrl, auth: `Token ${key}`, throwOnError: true });
const strict = { throwOnError: true } as const;

const loadEnded = (job_id: string) =>
  until(
    async () => (await showJob({ ...strict, path: { job_id } })).data,
    (job) => (job.type === 'import' && job.status === 'completed' ? job.counts : undefined),
  );

const linkOf = (job_id: string) =>
  until(
    async () => (await showExport({ ...strict, path: { job_id } })).data,
    (job) => job.presigned_urls[0]?.url,
  );

const identified = await identifyUser({ ...strict, body: person });
const tracked = await trackEvent({ ...strict, body: event });

const file = new File([users], 'users.csv', { type: 'text/csv' });
const { data: load } = await createImport({ ...strict, body: { max_errors: '50%', file } });
const counts = await loadEnded(load.job_id);
const { data: rejects } = await listRejects({ ...strict, path: { job_id: load.job_id } });

const { data: started } = await createExport({
  ...strict,
  body: { event_type: ['users'], format: 'ndjson', compression: 'none' },
});
const exported = await readIds(await linkOf(started.job_id));
const { data: exports } = await listExports({ ...strict, query: { limit: 1 } });
const { data: properties } = await listUserProperties(strict);
const refused = await showJob({
  throwOnError: false,
  path: { job_id: unknownJob },
});

const outcome = {
  statuses: [identified.response.status, tracked.response.status],
  counts: [counts.inserted, counts.rejected],
  // A page of rejects is an object, but a file requested with `Accept` is a string.
  rejects: typeof rejects === 'string' ? [] : rejects.data.map((each) => each.error_code),
  exported,
  listed: exports.map(({ job_id }) => job_id === started.job_id),
  properties: properties.map(({ key }) => key).sort(),
  refused: refused.error?.errors.map(({ error_code }) => error_code),
  explained: refused.error?.errors[0]?.message.toLowerCase().includes('job'),
};
process.stdout.write(JSON.stringify(outcome));
