import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandFailed } from '../../src/cli/errors.ts';
import { formatBytes, formatCount } from '../../src/cli/format.ts';
import { createProgress } from '../../src/cli/progress.ts';
import type { Client, Job } from './client.ts';
import { companyId, type Expected, userCells, userId, writeCompanies, writeUsers } from './made-up-data.ts';
import type { DemoStage } from './stage.ts';

const pollMs = 50;
const arrayPollMs = 5;
const arraySize = 100;

/** From the files to a finished job; what it should have come to. */
export async function showLoads(
  stage: DemoStage,
  client: Client,
): Promise<{ readonly job: Job; readonly expected: Expected }> {
  const { terminal } = stage.cli;
  terminal.print(stage.heading('2  Make up the data'));
  const { companies, users, expected } = await writeFiles(stage);
  terminal.print(stage.heading('3  Upload both files; each is answered with a job'));
  const companiesJob = await upload(stage, client, companies);
  const usersJob = await upload(stage, client, users);
  terminal.print(stage.heading('4  Follow the jobs'));
  await follow(stage, client, companiesJob.job_id, 'companies');
  return { job: await follow(stage, client, usersJob.job_id, 'users'), expected };
}

interface Files {
  readonly companies: string;
  readonly users: string;
  readonly expected: Expected;
}

async function writeFiles({ cli, folder, flags }: DemoStage): Promise<Files> {
  const companies = join(folder, 'companies.csv');
  const users = join(folder, 'users.csv');
  await writeCompanies(companies, flags.companies);
  const expected = await writeUsers(users, flags.users, flags.companies);
  const [sizeOfCompanies, sizeOfUsers] = [(await stat(companies)).size, (await stat(users)).size];
  cli.terminal.print(
    `   companies.csv  ${formatCount(flags.companies)} companies, ${formatBytes(sizeOfCompanies)}`,
  );
  cli.terminal.print(
    `   users.csv      ${formatCount(flags.users)} users, ${expected.superseded} of them twice, and ` +
      `${expected.rejected} bad rows; ${formatBytes(sizeOfUsers)}`,
  );
  return { companies, users, expected };
}

async function upload({ cli, service }: DemoStage, client: Client, path: string): Promise<Job> {
  const name = path.endsWith('users.csv') ? 'users.csv' : 'companies.csv';
  const { size } = await stat(path);
  cli.terminal.print(`   $ curl -H "Authorization: Token $KEY" -F file=@${name} ${service.url}/v1/imports`);
  const progress = createProgress(cli.terminal, `   ${name}`, false);
  const startedAt = performance.now();
  try {
    const job = await client.upload(path, (bytes) =>
      progress.show(bytes / Math.max(size, 1), () => formatBytes(bytes)),
    );
    progress.end();
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(2);
    cli.terminal.print(
      `   → job ${job.job_id}, ${job.status}: ${formatCount(Number(job.total_rows))} rows, ${seconds} s`,
    );
    return job;
  } finally {
    progress.end();
  }
}

async function follow({ cli, signal }: DemoStage, client: Client, jobId: string, name: string): Promise<Job> {
  const progress = createProgress(cli.terminal, `   ${name}`, false);
  try {
    for (;;) {
      const job = await client.job(jobId);
      const rate = job.rows_per_second === null ? '' : `, ${formatCount(job.rows_per_second)} rows/s`;
      progress.show(job.completed_rows / Math.max(Number(job.total_rows), 1), () => `${job.status}${rate}`);
      if (job.status === 'completed') {
        progress.end();
        cli.terminal.print(`   ${name}: completed, ${formatCount(job.counts.read)} rows${rate}`);
        return job;
      }
      if (job.status !== 'queued' && job.status !== 'processing') {
        throw new CommandFailed(`The job of the ${name} is ${job.status}: ${job.failure?.message ?? ''}`);
      }
      await delay(pollMs, undefined, { signal });
    }
  } finally {
    progress.end();
  }
}

/** A small array, from the request to the job's end: what an application would send every few minutes. */
export async function showArray({ cli, signal, heading, flags }: DemoStage, client: Client): Promise<void> {
  cli.terminal.print(heading(`7  An array of ${arraySize} users, there and back`));
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
    `   POST /v1/users/bulk_identify: accepted after ${acceptedMs.toFixed(0)} ms, completed after ${ms.toFixed(0)} ms`,
  );
}
