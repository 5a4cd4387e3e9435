/**
 * npm run bench:console [-- --mobile] [-- --paths /jobs,/load]
 *
 * Prints Lighthouse's figures for pages of the console, on the real service with some data. npx
 * runs Lighthouse in Debian's Chromium, or in the browser at CHROME_PATH. Do not run anything else
 * at the same time, because the figures depend on processor time.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { screenPaths } from '../test/support/browsers/console-screens.ts';
import { apiKey, startService } from './service.ts';
import { userCells, writeUsersFile } from './users-file.ts';

const lighthouse = 'lighthouse@12.8.2';
const users = 20_000;

interface Report {
  readonly categories: { readonly performance: { readonly score: number } };
  readonly audits: Readonly<Record<string, { readonly displayValue?: string }>>;
}

const { values: flags } = parseArgs({ options: { mobile: { type: 'boolean' }, paths: { type: 'string' } } });
const metrics = {
  'first-contentful-paint': 'first paint',
  'largest-contentful-paint': 'largest paint',
  'total-blocking-time': 'blocked',
  'cumulative-layout-shift': 'layout shift',
} as const;

const service = await startService();
try {
  const path = join(service.folder, 'users.csv');
  await writeUsersFile(path, { rows: users, format: 'csv' });
  const { job } = await service.load(path, 'text/csv');
  const ids = await findIds(job.job_id);
  const cookie = await signIn();
  process.stdout.write(
    `| page | performance | ${Object.values(metrics).join(' | ')} |\n|---|---|---|---|---|---|\n`,
  );
  for (const page of flags.paths?.split(',') ?? screenPaths()) {
    const address = page.replace(/:\w+/, ids[page.split('/')[1] ?? ''] ?? 'none');
    const { categories, audits } = await measure(`${service.address}/console${address}`, cookie);
    const values = Object.keys(metrics).map((name) => audits[name]?.displayValue);
    process.stdout.write(
      `| ${page} | ${Math.round(categories.performance.score * 100)} | ${values.join(' | ')} |\n`,
    );
  }
} finally {
  await service.stop();
}

/** Returns the id that each page shows, by the first segment of the page's path. */
async function findIds(jobId: string): Promise<Readonly<Record<string, string>>> {
  const ask = async (path: string, body?: object, method = 'POST') => {
    const init = {
      method,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    };
    const answer = await service.fetch(path, body && init);
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${await answer.text()}`);
    return JSON.parse((await answer.text()) || '{}') as Record<string, string>;
  };
  const [userId = '', , , companyId = ''] = userCells(0, 0);
  await ask('/v1/identify', { user_id: userId, company: { id: companyId } });
  const definition = { property: 'plan', equals: 'pro' };
  const segment = await ask('/v1/segments', { key: 'pros', title: 'Pros', definition });
  const exportJob = await ask('/api/v1/analytics/exports', { event_type: ['users'] });
  await ask('/v1/schedules/weekly', { cron: '@weekly', export: { range: 'last_7_days' } }, 'PUT');
  return {
    jobs: jobId,
    people: userId,
    companies: companyId,
    schedules: 'weekly',
    segments: segment['id'] ?? '',
    export: exportJob['job_id'] ?? '',
  };
}

async function signIn(): Promise<string> {
  const answer = await fetch(new URL('/v1/console/sign_in', service.address), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
    body: JSON.stringify({ key: apiKey }),
  });
  return answer.headers.getSetCookie()[0]?.split(';', 1)[0] ?? '';
}

async function measure(url: string, cookie: string): Promise<Report> {
  const options = [
    '--quiet',
    '--output=json',
    '--only-categories=performance',
    '--chrome-flags=--headless --no-sandbox',
    `--extra-headers=${JSON.stringify({ Cookie: cookie })}`,
  ];
  if (flags.mobile !== true) options.push('--preset=desktop');
  const run = promisify(execFile)('npx', ['--yes', lighthouse, url, ...options], {
    env: { CHROME_PATH: '/usr/bin/chromium-headless-shell', ...process.env },
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse((await run).stdout) as Report;
}
