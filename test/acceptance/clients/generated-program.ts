/* A program on the client that @hey-api/openapi-ts made: the same as fetch-program.ts. */
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

const { SLUICE_URL: baseUrl = '', SLUICE_API_KEY: key = '' } = process.env;
client.setConfig({ baseUrl, auth: `Token ${key}`, throwOnError: true });
const strict = { throwOnError: true } as const;

async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 100));
}

async function loadEnded(job_id: string) {
  for (;;) {
    const { data: job } = await showJob({ ...strict, path: { job_id } });
    if (job.type === 'import' && job.status === 'completed') return job.counts;
    if (job.status === 'failed' || job.status === 'cancelled') throw new Error(job.failure?.message);
    await pause();
  }
}

async function exportEnded(job_id: string): Promise<string[]> {
  for (;;) {
    const { data: job } = await showExport({ ...strict, path: { job_id } });
    const [file] = job.presigned_urls;
    if (job.status === 'failed') throw new Error(job.failure?.message);
    if (file === undefined) {
      await pause();
      continue;
    }
    return readIds(await (await fetch(file.url)).text());
  }
}

function readIds(text: string): string[] {
  const lines = text.trim().split('\n');
  return lines.map((line) => JSON.parse(line).user_id).sort();
}

const identified = await identifyUser({
  ...strict,
  body: {
    user_id: 'ada',
    metadata: { name: 'Ada Lovelace', logins: 7, tags: ['math'] },
    company: { company_id: 'acme', size: 120 },
  },
});
const tracked = await trackEvent({
  ...strict,
  body: { user_id: 'ada', event_name: 'report_exported', event_id: 'one', metadata: { rows: 1200 } },
});

const file = new File(['user_id,name\nu1,Ada\n,Nobody\n'], 'users.csv', { type: 'text/csv' });
const { data: load } = await createImport({ ...strict, body: { max_errors: '50%', file } });
const counts = await loadEnded(load.job_id);
const { data: rejects } = await listRejects({ ...strict, path: { job_id: load.job_id } });

const { data: started } = await createExport({
  ...strict,
  body: { event_type: ['users'], format: 'ndjson', compression: 'none' },
});
const exported = await exportEnded(started.job_id);
const { data: exports } = await listExports({ ...strict, query: { limit: 1 } });
const { data: properties } = await listUserProperties(strict);
const refused = await showJob({
  throwOnError: false,
  path: { job_id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01' },
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
