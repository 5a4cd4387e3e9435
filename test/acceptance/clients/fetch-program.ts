/* A program on types that openapi-typescript made, with openapi-fetch. */
import createClient from 'openapi-fetch';
import type { paths } from './openapi-typescript/api';

const { SLUICE_URL: baseUrl = '', SLUICE_API_KEY: key = '' } = process.env;
const client = createClient<paths>({ baseUrl, headers: { authorization: `Token ${key}` } });

function found<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 100));

async function loadEnded(job_id: string) {
  for (;;) {
    const job = found(await client.GET('/v1/background_jobs/{job_id}', { params: { path: { job_id } } }));
    if (job.type === 'import' && job.status === 'completed') return job.counts;
    if (job.status === 'failed' || job.status === 'cancelled') throw new Error(job.failure?.message);
    await pause();
  }
}

async function exportEnded(job_id: string): Promise<string[]> {
  for (;;) {
    const params = { path: { job_id } };
    const job = found(await client.GET('/api/v1/analytics/exports/jobs/{job_id}', { params }));
    if (job.status === 'failed') throw new Error(job.failure?.message);
    const [file] = job.presigned_urls;
    if (file !== undefined) return readIds(await (await fetch(file.url)).text());
    await pause();
  }
}

function readIds(text: string): string[] {
  const lines = text.trim().split('\n');
  return lines.map((line) => JSON.parse(line).user_id).sort();
}

const identified = await client.POST('/v1/identify', {
  body: {
    user_id: 'ada',
    metadata: { name: 'Ada Lovelace', logins: 7, tags: ['math'] },
    company: { company_id: 'acme', size: 120 },
  },
});
const tracked = await client.POST('/v1/track', {
  body: { user_id: 'ada', event_name: 'report_exported', event_id: 'one', metadata: { rows: 1200 } },
});

const file = new Blob(['user_id,name\nu1,Ada\n,Nobody\n'], { type: 'text/csv' });
const load = found(
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
const rejects = found(
  await client.GET('/v1/background_jobs/{job_id}/rejects', { params: { path: { job_id: load.job_id } } }),
);

const started = found(
  await client.POST('/api/v1/analytics/exports', {
    body: { event_type: ['users'], format: 'ndjson', compression: 'none' },
  }),
);
const exported = await exportEnded(started.job_id);
const exports = found(
  await client.GET('/api/v1/analytics/exports/jobs', { params: { query: { limit: 1 } } }),
);
const properties = found(await client.GET('/api/v1/analytics/exports/lookups/user_properties'));
const refused = await client.GET('/v1/background_jobs/{job_id}', {
  params: { path: { job_id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01' } },
});

const outcome = {
  statuses: [identified.response.status, tracked.response.status],
  counts: [counts.inserted, counts.rejected],
  // A page as JSON; the files that `Accept` may ask for are texts.
  rejects: typeof rejects === 'string' ? [] : rejects.data.map((each) => each.error_code),
  exported,
  listed: exports.map(({ job_id }) => job_id === started.job_id),
  properties: properties.map(({ key }) => key).sort(),
  refused: refused.error?.errors.map(({ error_code }) => error_code),
};
process.stdout.write(JSON.stringify(outcome));
