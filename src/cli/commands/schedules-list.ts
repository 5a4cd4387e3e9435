import type { Command } from 'commander';
import { findEnvironment } from '../../access/environments.ts';
import { readRuns } from '../../postgres/stores/schedule-run-items.ts';
import { nextDueTime } from '../../schedules/due-times.ts';
import type { Cli } from '../cli.ts';
import { readFileInForce } from '../schedules/file-in-force.ts';
import { showTime } from '../schedules/print-run.ts';
import { withSession } from '../session/session.ts';
import { readSettings } from '../settings.ts';
import { printable, renderTable } from '../table.ts';

interface Flags {
  readonly file?: string;
  readonly json: boolean;
}

const columns = ['schedule', 'environment', 'what', 'cron', 'next due', 'last due', 'last status'].map(
  (title) => ({
    title,
  }),
);

export function addSchedulesListCommand(schedules: Command, cli: Cli): void {
  schedules
    .command('list')
    .summary('the schedules, when they are due next, how they went last')
    .description('Lists the schedules of the file, when each is due next, and how its last run went.')
    .option('--file <file>', 'another file than SCHEDULES_FILE')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      `
Exit code: 0; 2 there is no file, or it is wrong.

Examples:
  $ SCHEDULES_FILE=sluice.schedules.yaml sluice schedules list
  $ sluice schedules list --file schedules.yaml --json | jq '.[].next_due'`,
    )
    .action((flags: Flags, command: Command) => list(cli, command, flags));
}

async function list(cli: Cli, command: Command, { file, json }: Flags): Promise<void> {
  const schedules = await readFileInForce(readSettings(cli, command).config, file);
  await withSession(cli, command, async ({ system: { db } }) => {
    const rows = await Promise.all(
      schedules.map(async (schedule) => {
        const environment = await findEnvironment(db, schedule.environment);
        const [last] =
          environment === null
            ? []
            : await readRuns(db, { environmentId: environment.environmentId, name: schedule.name }, 1);
        const next = schedule.enabled ? nextDueTime(schedule.cron, schedule.timeZone, Date.now()) : null;
        return { schedule, exists: environment !== null, last, next: next === null ? null : new Date(next) };
      }),
    );
    if (json) {
      return cli.terminal.json(
        rows.map(({ schedule, exists, last, next }) => ({
          schedule: schedule.name,
          environment: schedule.environment,
          environment_exists: exists,
          kind: schedule.work.kind,
          cron: schedule.cron,
          time_zone: schedule.timeZone,
          enabled: schedule.enabled,
          next_due: next?.toISOString() ?? null,
          last_due: last?.dueAt.toISOString() ?? null,
          last_status: last?.status ?? null,
        })),
      );
    }
    const cells = rows.map(({ schedule, exists, last, next }) => [
      schedule.name,
      exists ? schedule.environment : `${schedule.environment} (there is none)`,
      schedule.work.kind,
      printable(`${schedule.cron} ${schedule.timeZone}`, 40),
      schedule.enabled ? showTime(next) : 'disabled',
      showTime(last?.dueAt ?? null),
      last?.status ?? '–',
    ]);
    for (const line of renderTable(columns, cells)) cli.terminal.print(line);
  });
}
