import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { formatBytes, formatCount } from '../../src/base/wording.ts';
import { CommandFailed } from '../../src/cli/errors.ts';
import { createProgress, type Progress } from '../../src/cli/follow.ts';
import type { Client, Job } from './client.ts';
import { companyId, type Expected, userCells, userId, writeCompanies, writeUsers } from './made-up-data.ts';
import type { DemoStage } from './stage.ts';

const pollMs = 50;
const arrayPollMs = 5;
const arraySize = 100;

/** Writes and loads the files. Returns the job of the users and its expected counts. */
export async function showLoads(
  stage: DemoStage,
  client: Client,
): Promise<{ readonly job: Job; readonly expected: Expected }> {
  stage.cli.terminal.print(
    stage.heading('2  Load two files over HTTP: each is answered with a job, which workers carry out'),
  );
  const { companies, users, expected } = await writeFiles(stage);
  await load(stage, client, companies);
  return { job: await load(stage, client, users), expected };
}

interface MadeUpFile {
  readonly name: string;
  readonly path: string;
  readonly holds: string;
}

interface Files {
  readonly companies: MadeUpFile;
  readonly users: MadeUpFile;
  readonly expected: Expected;
}

async function writeFiles({ folder, flags }: DemoStage): Promise<Files> {
  const file = (name: string, holds: string): MadeUpFile => ({ name, path: join(folder, name), holds });
  const companies = file('companies.csv', `${formatCount(flags.companies)} companies`);
  await writeCompanies(companies.path, flags.companies);
  const path = join(folder, 'users.csv');
  const expected = await writeUsers(path, flags.users, flags.companies);
  const holds = `${formatCount(flags.users)} users, ${expected.superseded} of them twice, and ${expected.rejected} bad records`;
  return { companies, users: file('users.csv', holds), expected };
}

async function load(stage: DemoStage, client: Client, { name, path, holds }: MadeUpFile): Promise<Job> {
  const { terminal } = stage.cli;
  const { size } = await stat(path);
  const progress = createProgress(terminal, `   ${name}`, !stage.isWatched);
  const startedAt = performance.now();
  try {
    const { job_id: jobId } = await client.upload(path, (bytes) =>
      progress.show(bytes / Math.max(size, 1), () => formatBytes(bytes)),
    );
    const uploaded = since(startedAt);
    const job = await follow(stage, client, jobId, progress, name);
    progress.end();
    terminal.print(
      `   $ curl -H "Authorization: Token $KEY" -F file=@${name} ${stage.service.url}/v1/imports`,
    );
    terminal.print(
      `     ${holds}; ${formatBytes(size)} received in ${uploaded}, loaded after ${since(startedAt)}: ` +
        `${formatCount(job.rows_per_second ?? 0)} rows/s`,
    );
    return job;
  } finally {
    progress.end();
  }
}

function since(startedAt: number): string {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}

async function follow(
  { signal }: DemoStage,
  client: Client,
  jobId: string,
  progress: Progress,
  name: string,
): Promise<Job> {
  for (;;) {
    const job = await client.job(jobId);
    const rate = job.rows_per_second === null ? '' : `, ${formatCount(job.rows_per_second)} rows/s`;
    progress.show(job.completed_rows / Math.max(Number(job.total_rows), 1), () => `${job.status}${rate}`);
    if (job.status === 'completed') return job;
    if (job.status !== 'queued' && job.status !== 'processing') {
      throw new CommandFailed(`The job of ${name} is ${job.status}: ${job.failure?.message ?? ''}`);
    }
    await delay(pollMs, undefined, { signal });
  }
}

/** Sends a small array, as an application would every few minutes, and waits for its job. */
export async function showArray({ cli, signal, flags }: DemoStage, client: Client): Promise<void> {
  const users = Array.from({ length: arraySize }, (_, index) => {
    const n = flags.users + index;
    const [, , name = '', email = ''] = userCells(n, flags.companies);
    const metadata = { name, email, trial: true, seats: index };
    return { user_id: userId(n), company_id: companyId(index), metadata };
  });
  const startedAt = performance.now();
  const { job_id: jobId } = await client.post('/v1/users/bulk_identify', { users });
  const acceptedMs = performance.now() - startedAt;
  for (;;) {
    const job = await client.job(jobId);
    if (job.status === 'completed') break;
    if (job.status === 'failed')
      throw new CommandFailed(`The array's job failed: ${job.failure?.message ?? ''}`);
    await delay(arrayPollMs, undefined, { signal });
  }
  const ms = performance.now() - startedAt;
  cli.terminal.print(
    `   POST /v1/users/bulk_identify, ${arraySize} users: accepted after ${acceptedMs.toFixed(0)} ms, completed after ${ms.toFixed(0)} ms`,
  );
}
