import { type Command, Option } from 'commander';
import { type Job, type JobPage, type JobType, jobTypes, listJobs } from '../../background-jobs/find-jobs.ts';
import { renderJobListItem } from '../../background-jobs/render-job.ts';
import { MAX_PAGE_SIZE } from '../../domain/limits.ts';
import { type LoadStatus, loadStatuses } from '../../domain/load.ts';
import type { Cli } from '../cli.ts';
import { formatCount } from '../format-numbers.ts';
import { parseCount } from '../import/parse-options.ts';
import { jobColumns, jobRow } from '../jobs/job-row.ts';
import { linkBase } from '../link-base.ts';
import { requireEnvironment, withSession } from '../session/session.ts';
import { renderTable } from '../table.ts';

interface Flags {
  readonly env: string;
  readonly status?: LoadStatus;
  readonly type?: JobType;
  readonly limit: number;
  readonly json: boolean;
}

export function addJobsListCommand(jobs: Command, cli: Cli): void {
  jobs
    .command('list')
    .summary('the latest jobs')
    .description('Lists the jobs of an environment, loads, exports and deletions, newest first.')
    .addOption(new Option('--status <status>', 'only those').choices(loadStatuses))
    .addOption(new Option('--type <type>', 'only those').choices(jobTypes))
    .option('--limit <n>', 'how many', parseCount, 20)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice jobs list\n  $ sluice jobs list --type export\n  $ sluice jobs list --status failed --limit 5 --json | jq .[].job_id',
    )
    .action((flags: Flags, command: Command) => list(cli, command, flags));
}

async function list(cli: Cli, command: Command, flags: Flags): Promise<void> {
  const { type, status } = flags;
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    const { jobs, total } = await collect(flags, (limit, after) =>
      listJobs(session.system, environmentId, { type, status }, { limit, after }),
    );
    const base = linkBase(session.system.config);
    if (flags.json) return cli.terminal.json(jobs.map((job) => renderJobListItem(job, base)));
    if (jobs.length === 0) return cli.terminal.note('There are no such jobs.');
    for (const line of renderTable(jobColumns, jobs.map(jobRow))) cli.terminal.print(line);
    if (total > jobs.length) cli.terminal.note(`${formatCount(total)} in all; --limit shows more.`);
  });
}

/** Page after page up to the limit. */
async function collect(
  { limit }: Flags,
  page: (limit: number, after: string | null) => Promise<JobPage>,
): Promise<{ readonly jobs: readonly Job[]; readonly total: number }> {
  const jobs: Job[] = [];
  for (let after: string | null = null; ; ) {
    const found = await page(Math.min(limit - jobs.length, MAX_PAGE_SIZE), after);
    jobs.push(...found.jobs);
    after = found.next;
    if (after === null || jobs.length >= limit) return { jobs, total: found.total };
  }
}
