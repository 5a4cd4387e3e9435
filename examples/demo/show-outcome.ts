import { readFile } from 'node:fs/promises';
import { formatBytes, formatCount, printable, renderTable } from '../../src/cli/format.ts';
import type { Client, Job } from './client.ts';
import { companyId, type Expected, userId } from './made-up-data.ts';
import type { DemoStage } from './stage.ts';

/** The job record, the balance, the rejects, the rows, the figures. True if the counts are what they must be. */
export async function showOutcome(
  stage: DemoStage,
  client: Client,
  job: Job,
  expected: Expected,
): Promise<boolean> {
  const { terminal } = stage.cli;
  terminal.print(
    stage.heading('5  The job record, the balance of its counts, and the records that were refused'),
  );
  terminal.print(indent(JSON.stringify(job, null, 2)));
  const right = showBalance(stage, job, expected);
  await showRejects(stage, client, job);
  terminal.print(stage.heading('6  The rows, as an analyst finds them'));
  await showRows(stage);
  await showFigures(stage, job);
  return right;
}

function showBalance({ cli }: DemoStage, { counts }: Job, expected: Expected): boolean {
  const { read, inserted, updated, unchanged, superseded, rejected } = counts;
  const sum = inserted + updated + unchanged + superseded + rejected;
  cli.terminal.print(
    `\n   ${formatCount(read)} read = ${formatCount(inserted)} inserted + ${updated} updated + ${unchanged} unchanged + ` +
      `${superseded} superseded + ${rejected} rejected`,
  );
  const right =
    read === sum &&
    read === expected.read &&
    rejected === expected.rejected &&
    superseded === expected.superseded;
  const sentence = right
    ? 'It balances, and is what the file was made to come to.'
    : 'That is not what the file holds!';
  cli.terminal.print(`   ${cli.terminal.style(right ? 'green' : 'red', sentence)}\n`);
  return right;
}

async function showRejects({ cli }: DemoStage, client: Client, job: Job): Promise<void> {
  const rejects = await client.rejects(job.job_id);
  const rows = rejects.map(({ row, line, column, error_code, message }) => [
    formatCount(row),
    formatCount(line),
    printable(column ?? '', 16),
    error_code,
    printable(message, 72),
  ]);
  const columns = [
    { title: 'row', align: 'right' },
    { title: 'line', align: 'right' },
    { title: 'column' },
    { title: 'why' },
    { title: 'in words' },
  ] as const;
  for (const line of renderTable(columns, rows)) cli.terminal.print(`   ${line}`);
}

/** Shown as it is run: against the tables themselves. */
const queries = (): string[] => [
  `select user_id, company_id, metadata->>'name' as name, metadata->>'title' as title, metadata->>'score' as score
   from sluice.users where user_id in ('${userId(0)}', '${userId(76)}', '${userId(81)}') order by user_id`,
  `select c.company_id, c.metadata->>'name' as name, count(*) as users
   from sluice.companies c join sluice.users u using (environment_id, company_id)
   where c.company_id <= '${companyId(2)}' group by 1, 2 order by 1`,
];

async function showRows({ cli, service }: DemoStage): Promise<void> {
  for (const query of queries()) {
    const { rows, fields } = await service.system.pool.query<Record<string, unknown>>(query);
    cli.terminal.print(`   ${cli.terminal.style('dim', query)}\n`);
    const columns = fields.map(({ name }) => ({ title: name }));
    const cells = rows.map((row) => fields.map(({ name }) => printable(String(row[name] ?? ''), 40)));
    for (const line of renderTable(columns, cells)) cli.terminal.print(`   ${line}`);
    cli.terminal.print('');
  }
}

async function showFigures({ cli, service }: DemoStage, job: Job): Promise<void> {
  const [server, ...workers] = await Promise.all([process.pid, ...service.workerPids].map(peakMemory));
  const memory = (bytes: number | null | undefined): string =>
    bytes == null ? 'unknown' : formatBytes(bytes);
  cli.terminal.print(`   rate          ${formatCount(job.rows_per_second ?? 0)} rows/s`);
  cli.terminal.print(`   peak memory   server ${memory(server)}; workers ${workers.map(memory).join(', ')}`);
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '   ');
}

/** The most memory that a process has held so far, in bytes; null where the system does not say. */
async function peakMemory(pid: number): Promise<number | null> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) * 1024;
  } catch {
    // Not Linux, or the process has just ended.
    return pid === process.pid ? process.resourceUsage().maxRSS * 1024 : null;
  }
}
