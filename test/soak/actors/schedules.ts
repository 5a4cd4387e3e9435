import { rename, writeFile } from 'node:fs/promises';
import { pause } from '../patience.ts';
import type { Sql } from '../site/site.ts';
import type { Actor, Stage } from './actor.ts';
import { type Clockwork, checkDueTimes } from './due-times.ts';
import { ProfileSpace } from './profile-space.ts';
import { checkScheduledExports } from './scheduled-exports.ts';
import { createScheduledFiles } from './scheduled-files.ts';
import { checkScheduledLoads } from './scheduled-loads.ts';
import { openScheduledPage, type ScheduledPage } from './scheduled-page.ts';

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
