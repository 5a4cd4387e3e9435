import { rename, writeFile } from 'node:fs/promises';
import type { Sql, Tenant } from '../site/site.ts';
import { pause } from '../waiting.ts';
import type { Actor, Stage } from './actor.ts';
import { ProfileSpace } from './profile-space.ts';
import { checkScheduledExports } from './scheduled-exports.ts';
import {
  checkScheduledLoads,
  createScheduledFiles,
  openScheduledPage,
  type ScheduledPage,
} from './scheduled-loads.ts';

const minuteMs = 60_000;
/** As if the service had known the schedules for so long, and been away since. */
const awayMs = 3 * minuteMs;
/** Workers look at the file every two seconds. */
const heedMs = 5_000;

/**
 * Changes what three schedules load and export that are due every minute. They are met as if the service had been away for three
 * minutes, so that there are due times that were missed, also in a soak that is over before the next one.
 */
export function createSchedules(
  stage: Stage,
  options: { readonly name: string; readonly tenant: number },
): Actor {
  const { name } = options;
  const { site } = stage;
  const tenant = stage.tenant(options.tenant);
  const random = stage.random(name);
  const users = new ProfileSpace('users', `${name}-files-`, tenant);
  const companies = new ProfileSpace('companies', `${name}-page-`, tenant);
  const files = createScheduledFiles(site.schedules.dropDir, users, random);
  const names = { files: `${name}-files`, page: `${name}-page`, export: `${name}-export` };
  let page: ScheduledPage | undefined;
  let [knownSince, disabledAt] = [0, 0];
  let figures = { runs: 0, ended: 0 };

  /** An export waits for a quarter of a minute after its due time: a soak that is over before has one of the past. */
  const isShort = stage.minutes < 1;

  function exportDueAt(): number {
    return Math.floor((knownSince + 1.5 * minuteMs) / minuteMs) * minuteMs;
  }

  async function write(enabled: boolean): Promise<void> {
    const common = { environment: tenant.name, cron: '* * * * *', enabled };
    const at = new Date(exportDueAt());
    const schedules = [
      {
        ...common,
        name: names.files,
        missed: 'run_all',
        overlap: 'wait',
        load: { files: { pattern: `${site.schedules.dropDir}/*` }, entity: 'users' },
      },
      {
        ...common,
        name: names.page,
        missed: 'skip',
        load: { http: { url: page?.url, allow_http: true, allow_private: true }, entity: 'companies' },
      },
      {
        ...common,
        ...(isShort && { cron: `${at.getUTCMinutes()} ${at.getUTCHours()} * * *` }),
        name: names.export,
        missed: 'run_once',
        export: { range: 'since_last_success', format: 'ndjson', to_dir: tenant.name },
      },
    ];
    // Never seen half written.
    await writeFile(`${site.schedules.file}.new`, JSON.stringify({ schedules }));
    await rename(`${site.schedules.file}.new`, site.schedules.file);
  }

  /** Nothing new while the database is away. */
  async function look(): Promise<void> {
    const [counts] = await site
      .sql<typeof figures>(
        `select count(*)::int as runs, count(ended_at)::int as ended from sluice.schedule_runs
         where environment_id = $1 and starts_with(schedule_name, $2)`,
        [tenant.environmentId, `${name}-`],
      )
      .catch(() => []);
    figures = counts ?? figures;
  }

  return {
    name,
    async prepare() {
      page = await openScheduledPage(companies, random);
      for (const source of [files, files, page]) await source.change();
      knownSince = Date.now() - awayMs;
      for (const schedule of Object.values(names)) {
        await site.sql(
          'insert into sluice.schedules (environment_id, schedule_name, considered_until) values ($1, $2, $3)',
          [tenant.environmentId, schedule, new Date(knownSince)],
        );
      }
      await write(true);
    },
    async run() {
      while (!stage.closing.aborted) {
        await pause(random.integer(500, 6_000), stage.closing);
        await (random.chance(0.3) ? page : files)?.change();
        await look();
      }
      await write(false);
      disabledAt = Date.now();
      await pause(heedMs);
    },
    figures: () => ({
      ...figures,
      files: files.versions.size,
      pages: page?.versions.size ?? 0,
    }),
    async check(sql: Sql) {
      await look();
      const due = everyMinute(knownSince, disabledAt + minuteMs);
      const clockworks: readonly Clockwork[] = [
        { name: names.files, missed: 'run_all', overlap: 'wait', due },
        { name: names.page, missed: 'skip', overlap: 'skip', due },
        { name: names.export, missed: 'run_once', overlap: 'skip', due: isShort ? [exportDueAt()] : due },
      ];
      const problems: string[] = [];
      for (const clockwork of clockworks) {
        // The last one before the end may have come to nobody's notice.
        problems.push(...(await checkDueTimes(sql, tenant, clockwork, disabledAt - minuteMs)));
      }
      problems.push(...(await checkScheduledLoads(sql, tenant, names.files, files.versions, users)));
      if (page !== undefined)
        problems.push(...(await checkScheduledLoads(sql, tenant, names.page, page.versions, companies)));
      return [...problems, ...(await checkScheduledExports(sql, tenant, names.export))];
    },
  };
}

/** After `from`, up to `to`; ms since 1970. */
function everyMinute(from: number, to: number): readonly number[] {
  const first = Math.floor(from / minuteMs) + 1;
  const last = Math.floor(to / minuteMs);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => (first + at) * minuteMs);
}

/** What a schedule is due at, and what is to be done about due times that nobody was there for. */
export interface Clockwork {
  readonly name: string;
  readonly missed: 'run_all' | 'run_once' | 'skip';
  readonly overlap: 'skip' | 'wait';
  /** Ascending, in ms since 1970. The first ones passed before the schedule was put into force. */
  readonly due: readonly number[];
}

interface Run {
  readonly due_at: Date;
  readonly status: string;
  readonly cause: string;
  readonly missed: number;
  readonly reason_code: string | null;
  readonly reason: string | null;
}

const goodEnds = ['completed', 'completed_with_rejects', 'unchanged'];

/**
 * Every due time up to `until` has one run, or a later one that says that it stands for it; all have ended, well or for a
 * reason that a fault explains; and what was missed at the beginning is dealt with as configured.
 */
export async function checkDueTimes(
  sql: Sql,
  { environmentId }: Tenant,
  clockwork: Clockwork,
  until: number,
): Promise<string[]> {
  const { name, due } = clockwork;
  const runs = await sql<Run>(
    `select due_at, status, cause, missed, reason_code, reason from sluice.schedule_runs
     where environment_id = $1 and schedule_name = $2 order by due_at`,
    [environmentId, name],
  );
  const problems: string[] = [];
  let next = 0;
  for (const run of runs) {
    const what = `${name}, due at ${run.due_at.toISOString()},`;
    const place = due.indexOf(run.due_at.getTime(), next);
    if (place < 0) problems.push(`${what} was not due`);
    else {
      if (place - next !== run.missed) {
        problems.push(
          `${what} stands for ${run.missed} due times before it, of ${place - next} without a run`,
        );
      }
      next = place + 1;
    }
    if (!endedWell(clockwork, run))
      problems.push(`${what} is ${run.status}: ${run.reason_code} ${run.reason}`);
  }
  const left = due.slice(next).filter((at) => at <= until);
  if (left.length > 0)
    problems.push(`${name} has no run for ${left.map((at) => new Date(at).toISOString())}`);
  const [first] = runs;
  if (first !== undefined && !isAsConfigured[clockwork.missed](first)) {
    problems.push(`${name} was missed, and made ${JSON.stringify(first)} of it`);
  }
  return problems;
}

function endedWell({ missed, overlap }: Clockwork, { status, reason_code }: Run): boolean {
  if (status === 'skipped') {
    return (
      (reason_code === 'overlap' && overlap === 'skip') || (reason_code === 'missed' && missed === 'skip')
    );
  }
  // After five lost workers a run, or its export, is given up, and says so.
  return goodEnds.includes(status) || (status === 'failed' && reason_code === 'worker_lost');
}

const isAsConfigured: Readonly<Record<Clockwork['missed'], (run: Run) => boolean>> = {
  run_all: ({ cause, missed }) => cause === 'made_up' && missed === 0,
  run_once: ({ cause, missed, reason_code }) =>
    reason_code !== 'missed' && (cause === 'made_up' || missed > 0),
  skip: ({ status, reason_code }) => status === 'skipped' && reason_code === 'missed',
};
