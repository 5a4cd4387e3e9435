import { readFile } from 'node:fs/promises';
import { formatBytes, formatCount } from '../../src/base/wording.ts';
import { type Columns, printable, renderTable } from '../../src/cli/terminal.ts';
import type { Client, Job } from './client.ts';
import { type Expected, userId } from './made-up-data.ts';
import type { DemoStage } from './stage.ts';

/** Shows the balance, the rejects and some rows. Returns true if the counts are right. */
export async function showOutcome(
  stage: DemoStage,
  client: Client,
  job: Job,
  expected: Expected,
): Promise<boolean> {
  const { terminal } = stage.cli;
  terminal.print(stage.heading('3  What became of each record of users.csv, and why some were refused'));
  const isRight = showBalance(stage, job, expected);
  await showRejects(stage, client, job);
  terminal.print(stage.heading('4  The rows, as an analyst finds them'));
  await showRows(stage);
  return isRight;
}

function showBalance({ cli }: DemoStage, { counts }: Job, expected: Expected): boolean {
  const { read, inserted, updated, unchanged, superseded, rejected } = counts;
  const sum = inserted + updated + unchanged + superseded + rejected;
  cli.terminal.print(
    `   ${formatCount(read)} read = ${formatCount(inserted)} inserted + ${updated} updated + ${unchanged} unchanged + ` +
      `${superseded} superseded + ${rejected} rejected`,
  );
  const isRight =
    read === sum &&
    read === expected.read &&
    rejected === expected.rejected &&
    superseded === expected.superseded;
  const sentence = isRight
    ? 'The counts balance and match the generated file. A user who appears twice has the later values.'
    : 'The counts do not match the generated file!';
  cli.terminal.print(`   ${cli.terminal.style(isRight ? 'green' : 'red', sentence)}`);
  return isRight;
}

async function showRejects({ cli }: DemoStage, client: Client, job: Job): Promise<void> {
  cli.terminal.print(`   GET /v1/background_jobs/${job.job_id}/rejects`);
  const rejects = await client.rejects(job.job_id);
  const columns: Columns<(typeof rejects)[number]> = {
    '>row': ({ row }) => row,
    '>line': ({ line }) => line,
    column: ({ column }) => printable(column ?? '', 16),
    why: ({ error_code }) => error_code,
    'in words': ({ message }) => printable(message, 72),
  };
  for (const line of renderTable(columns, rejects)) cli.terminal.print(`   ${line}`);
}

/** The query is shown exactly as it is run, against sluice's own tables. */
const query = `select user_id, c.metadata->>'name' as company, u.metadata->>'name' as name, u.metadata->>'title' as title, u.metadata->>'score' as score
   from sluice.users u join sluice.companies c using (environment_id, company_id)
   where user_id in ('${userId(0)}', '${userId(76)}', '${userId(81)}') order by user_id`;

async function showRows({ cli, service }: DemoStage): Promise<void> {
  const { rows, fields } = await service.system.pool.query<Record<string, unknown>>(query);
  cli.terminal.print(`   ${cli.terminal.style('dim', query)}`);
  const columns: Columns<Readonly<Record<string, unknown>>> = Object.fromEntries(
    fields.map(({ name }) => [name, (row) => printable(String(row[name] ?? ''), 40)]),
  );
  for (const line of renderTable(columns, rows)) cli.terminal.print(`   ${line}`);
}

/** The server runs in the process of the demo, which also makes the files and sends all requests. */
export async function showMemory({ cli, service }: DemoStage): Promise<void> {
  const [demo, ...workers] = await Promise.all([process.pid, ...service.workerPids].map(peakMemory));
  const memory = (bytes: number | null | undefined): string =>
    bytes == null ? 'unknown' : formatBytes(bytes);
  cli.terminal.print(
    `   most memory held: server and demo together ${memory(demo)}, workers ${workers.map(memory).join(' and ')}`,
  );
}

/** `null` if the system does not report the memory. */
async function peakMemory(pid: number): Promise<number | null> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) * 1024;
  } catch {
    // This is not Linux, or the process has just ended.
    return pid === process.pid ? process.resourceUsage().maxRSS * 1024 : null;
  }
}
