import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cli } from '../cli.ts';
import type { DemoFlags } from '../commands/demo.ts';
import { CommandFailed } from '../exit-codes.ts';
import { formatBytes, formatCount } from '../format-numbers.ts';
import type { Service } from '../service/start-service.ts';
import { type Client, createClient, type Job } from './client.ts';
import { createMeter } from './meter.ts';
import { showArray } from './show-array.ts';
import { showCatalogue } from './show-catalogue.ts';
import { showEvents } from './show-events.ts';
import { showExport } from './show-export.ts';
import { showOutcome } from './show-outcome.ts';
import { type Expected, writeCompanies, writeUsers } from './write-files.ts';

/** What every step of the demo works with. */
export interface DemoStage {
  readonly cli: Cli;
  readonly service: Service;
  readonly folder: string;
  readonly key: string;
  readonly flags: DemoFlags;
  readonly signal: AbortSignal;
  readonly heading: (text: string) => string;
}

/** From the files to the rows. True if everything came out as it must. */
export async function showLoads(stage: DemoStage): Promise<boolean> {
  const { cli, service, key, signal, heading } = stage;
  const client = createClient(service.url, key, signal);
  cli.terminal.print(heading('2  Make up the data'));
  const { companies, users, expected } = await writeFiles(stage);
  cli.terminal.print(heading('3  Upload both files; each is answered with a job'));
  const companiesJob = await upload(stage, client, companies);
  const usersJob = await upload(stage, client, users);
  cli.terminal.print(heading('4  Follow the jobs'));
  await follow(stage, client, companiesJob.job_id, 'companies');
  const done = await follow(stage, client, usersJob.job_id, 'users');
  const right = await showOutcome(stage, client, done, expected);
  await showArray(stage, client);
  await showEvents(stage);
  await showCatalogue(stage, client);
  await showExport(stage, client);
  return right;
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
  const meter = createMeter(cli.terminal, name);
  const startedAt = performance.now();
  try {
    const job = await client.upload(path, (bytes) => meter.show(bytes, size, formatBytes(bytes)));
    meter.end();
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(2);
    cli.terminal.print(
      `   → job ${job.job_id}, ${job.status}: ${formatCount(Number(job.total_rows))} rows, ${seconds} s`,
    );
    return job;
  } finally {
    meter.end();
  }
}

const pollMs = 50;

async function follow({ cli, signal }: DemoStage, client: Client, jobId: string, name: string): Promise<Job> {
  const meter = createMeter(cli.terminal, name);
  try {
    for (;;) {
      const job = await client.job(jobId);
      const rate = job.rows_per_second === null ? '' : `, ${formatCount(job.rows_per_second)} rows/s`;
      meter.show(job.completed_rows, Number(job.total_rows), `${job.status}${rate}`);
      if (job.status === 'completed') {
        meter.end();
        cli.terminal.print(`   ${name}: completed, ${formatCount(job.counts.read)} rows${rate}`);
        return job;
      }
      if (job.status !== 'queued' && job.status !== 'processing') {
        throw new CommandFailed(`The job of the ${name} is ${job.status}: ${job.failure?.message ?? ''}`);
      }
      await delay(pollMs, undefined, { signal });
    }
  } finally {
    meter.end();
  }
}
