import { type Command, Option } from 'commander';
import { MAX_PAGE_SIZE } from '../../domain/limits.ts';
import { type Load, type LoadStatus, type LoadType, loadStatuses, loadTypes } from '../../domain/load.ts';
import { renderListItem } from '../../http/render-job.ts';
import { type LoadPage, listLoads } from '../../load/inspect-load.ts';
import type { Cli } from '../cli.ts';
import { formatCount } from '../format-numbers.ts';
import { parseCount } from '../import/parse-options.ts';
import { linkBase } from '../link-base.ts';
import { requireEnvironment, withSession } from '../session/session.ts';
import { printable, renderTable } from '../table.ts';

interface Flags {
  readonly env: string;
  readonly status?: LoadStatus;
  readonly type?: LoadType;
  readonly limit: number;
  readonly json: boolean;
}

const columns = [
  { title: 'job' },
  { title: 'status' },
  { title: 'file' },
  { title: 'accepted' },
  { title: 'rows', align: 'right' },
  { title: 'rejected', align: 'right' },
] as const;

export function addJobsListCommand(jobs: Command, cli: Cli): void {
  jobs
    .command('list')
    .summary('the latest loads')
    .description('Lists the loads of an environment, newest first.')
    .addOption(new Option('--status <status>', 'only those').choices(loadStatuses))
    .addOption(new Option('--type <type>', 'only those').choices(loadTypes))
    .option('--limit <n>', 'how many', parseCount, 20)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice jobs list\n  $ sluice jobs list --status failed --limit 5 --json | jq .[].job_id',
    )
    .action((flags: Flags, command: Command) => list(cli, command, flags));
}

async function list(cli: Cli, command: Command, flags: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    const { loads, total } = await collect(flags, (limit, after) =>
      listLoads(session.system, environmentId, filterOf(flags), { limit, after }),
    );
    const base = linkBase(session.system.config);
    if (flags.json) return cli.terminal.json(loads.map((load) => renderListItem(load, base)));
    if (loads.length === 0) return cli.terminal.note('There are no such jobs.');
    for (const line of renderTable(columns, loads.map(cells))) cli.terminal.print(line);
    if (total > loads.length) cli.terminal.note(`${formatCount(total)} in all; --limit shows more.`);
  });
}

function filterOf({ status, type }: Flags): { status?: LoadStatus; type?: LoadType } {
  return { ...(status === undefined ? {} : { status }), ...(type === undefined ? {} : { type }) };
}

/** Page after page up to the limit. */
async function collect(
  { limit }: Flags,
  page: (limit: number, after: string | null) => Promise<LoadPage>,
): Promise<{ readonly loads: readonly Load[]; readonly total: number }> {
  const loads: Load[] = [];
  for (let after: string | null = null; ; ) {
    const found = await page(Math.min(limit - loads.length, MAX_PAGE_SIZE), after);
    loads.push(...found.loads);
    after = found.next;
    if (after === null || loads.length >= limit) return { loads, total: found.total };
  }
}

function cells(load: Load): string[] {
  const accepted = `${load.acceptedAt.toISOString().slice(0, 19).replace('T', ' ')}Z`;
  const { totalRows, tally } = load;
  return [
    load.jobId,
    load.status,
    printable(load.filename, 36),
    accepted,
    formatCount(totalRows),
    formatCount(tally.rejected),
  ];
}
