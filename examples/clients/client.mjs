// sluice with Node 20 or newer, without a package. Set SLUICE_URL and SLUICE_API_KEY.
//   node client.mjs users.csv
import { openAsBlob } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { argv, env, stdout } from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';

const { SLUICE_URL: url = 'http://127.0.0.1:8080', SLUICE_API_KEY: key } = env;
const [, , file] = argv;
const print = (text) => stdout.write(`${text}\n`);

/** Returns the answer of a call. Throws for a refusal, with its error record. */
async function call(path, { body, ...init } = {}) {
  const isForm = body instanceof FormData;
  const response = await fetch(new URL(path, url), {
    ...(body !== undefined && { method: 'POST', body: isForm ? body : JSON.stringify(body) }),
    headers: {
      authorization: `Token ${key}`,
      ...(body !== undefined && !isForm && { 'content-type': 'application/json' }),
      ...init.headers,
    },
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

/** Waits until the job at a path has ended. */
async function waitFor(path) {
  for (;;) {
    const job = await (await call(path)).json();
    if (job.status === 'completed') return job;
    if (job.status === 'failed' || job.status === 'cancelled') throw new Error(JSON.stringify(job.failure));
    await wait(500);
  }
}

await call('/v1/identify', {
  body: {
    user_id: 'ada',
    metadata: { name: 'Ada Lovelace', plan: 'pro' },
    company: { company_id: 'acme' },
  },
});
await call('/v1/track', {
  // An event with an id that is sent again is stored once.
  body: {
    user_id: 'ada',
    event_name: 'report_exported',
    event_id: 'report-1',
    metadata: { rows: 1200 },
  },
});
print('identified ada, tracked report_exported');

const form = new FormData();
form.set('file', await openAsBlob(file), basename(file));
const { job_id } = await (await call('/v1/imports', { body: form })).json();
const load = await waitFor(`/v1/background_jobs/${job_id}`);
print(`imported ${basename(file)}: ${JSON.stringify(load.counts)}`);
const rejects = await (await call(`/v1/background_jobs/${job_id}/rejects`)).json();
for (const { line, error_code, message } of rejects.data) {
  print(`refused, line ${line}: ${error_code}, ${message}`);
}

const request = { event_type: ['users'], compression: 'none' };
const { job_id: exportId } = await (await call('/api/v1/analytics/exports', { body: request })).json();
const { presigned_urls: files } = await waitFor(`/api/v1/analytics/exports/jobs/${exportId}`);
for (const { url: link, filename, rows } of files) {
  // The link is signed, so it needs no key.
  const response = await fetch(link);
  if (!response.ok) throw new Error(`${filename}: ${response.status}`);
  await writeFile(filename, Buffer.from(await response.arrayBuffer()));
  print(`exported ${rows} rows to ${filename}`);
}
