/** A program that uses openapi-fetch with the types that openapi-typescript generates. */
import createClient from 'openapi-fetch';
import type { paths } from './openapi-typescript/api';
import { event, person, readIds, unknownJob, until, users } from './shared';

const { SLUICE_URL: baseUrl = '', SLUICE_API_KEY: key = '' } = process.env;
const client = createClient<paths>({ baseUrl, headers: { authorization: `Token ${key}` } });

function dataOf<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const loadEnded = (job_id: string) =>
  until(
    async () => dataOf(await client.GET('/v1/background_jobs/{job_id}', { params: { path: { job_id } } })),
    (job) => (job.type === 'import' && job.status === 'completed' ? job.counts : undefined),
  );

const linkOf = (job_id: string) =>
  until(
    async () =>
      dataOf(await client.GET('/api/v1/analytics/exports/jobs/{job_id}', { params: { path: { job_id } } })),
    (job) => job.presigned_urls[0]?.url,
  );

const identified = await client.POST('/v1/identify', { body: person });
const tracked = await client.POST('/v1/track', { body: event });

const file = new Blob([users], { type: 'text/csv' });
const load = dataOf(
  await client.POST('/v1/imports', {
    body: { file, max_errors: '50%' },
    bodySerializer: (body) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(body)) {
        form.set(name, value instanceof Blob ? value : String(value));
      }
      return form;
    },
  }),
);
const counts = await loadEnded(load.job_id);
const rejects = dataOf(
  await client.GET('/v1/background_jobs/{job_id}/rejects', { params: { path: { job_id: load.job_id } } }),
);

const started = dataOf(
  await client.POST('/api/v1/analytics/exports', {
    body: { event_type: ['users'], format: 'ndjson', compression: 'none' },
  }),
);
const exported = await readIds(await linkOf(started.job_id));
const exports = dataOf(
  await client.GET('/api/v1/analytics/exports/jobs', { params: { query: { limit: 1 } } }),
);
const properties = dataOf(await client.GET('/api/v1/analytics/exports/lookups/user_properties'));
const refused = await client.GET('/v1/background_jobs/{job_id}', {
  params: { path: { job_id: unknownJob } },
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
