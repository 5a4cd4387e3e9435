import { join } from 'node:path';
import { embeddedPostgres } from '../../src/postgres/embedded/embedded-postgres.ts';
import { connectTo } from '../support/servers/connect.ts';
import { patienceMs, waitFor } from '../support/wait-for.ts';

export interface Job {
  readonly job_id: string;
  readonly status: string;
  readonly counts: Readonly<Record<string, number>>;
}

export async function call(
  url: string,
  key: string | null,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  const headers = { ...(key === null ? {} : { authorization: `Token ${key}` }), ...init.headers };
  return fetch(url + path, { ...init, headers });
}

export async function upload(url: string, key: string | null, csv: string, name = 'users.csv'): Promise<Job> {
  const form = new FormData();
  form.set('file', new Blob([csv], { type: 'text/csv' }), name);
  const response = await call(url, key, '/v1/imports', { method: 'POST', body: form });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as Job;
}

export async function jobEnded(
  url: string,
  key: string | null,
  jobId: string,
  timeoutMs = patienceMs,
): Promise<Job> {
  return waitFor(
    `job ${jobId} to end`,
    async () => {
      const response = await call(url, key, `/v1/background_jobs/${jobId}`);
      const job = (await response.json()) as Job;
      if (!['completed', 'failed', 'cancelled'].includes(job.status)) throw new Error(JSON.stringify(job));
      return job;
    },
    { timeoutMs },
  );
}

/** Runs a statement on the embedded server of a data directory. */
export async function query<T extends object>(dataDir: string, sql: string): Promise<T[]> {
  const url = await embeddedPostgres.findRunning(join(dataDir, 'postgres'));
  if (url === undefined) throw new Error('no server runs');
  return (await connectTo(url, (client) => client.query<T>(sql))).rows;
}

/** Returns a CSV of `rows` users, not sorted by key. Each row contains `version`. */
export function usersCsv(rows: number, version = 'one'): string {
  const lines = ['user_id,name,version'];
  for (let n = 0; n < rows; n++) lines.push(`u${(n * 7919) % rows},"Name, ${n}",${version}`);
  return `${lines.join('\n')}\n`;
}
