/** `sluice upgrade`: data of an earlier version becomes data of this one; `--check` says beforehand what that takes. */
import { resolve } from 'node:path';
import { previousFolder, readMajors, upgradeData } from '../backup/new-data.ts';
import { checkUpgrade } from '../doctor/check-upgrade.ts';
import { plural } from '../domain/wording.ts';
import { embeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { prepareDatabase } from '../provide-database.ts';
import { defineCommand, flag, type Invocation, text } from './define-command.ts';
import { printFindings } from './doctor.ts';
import { CommandFailed, exitCodes } from './errors.ts';
import { createProgress } from './follow.ts';
import { provideForCommand, requireData } from './session.ts';
import { readSettings, type Settings } from './settings.ts';

export const upgrade = defineCommand({
  name: 'upgrade',
  summary: 'bring data of an earlier version to this one; --check says what that takes',
  description:
    'Brings data of an earlier version to this one: copies data of another major version of PostgreSQL into a new data\n' +
    'directory, and applies the missing migrations. Stop the service first. The old data is kept, and its folder printed.\n' +
    '--check changes nothing and says which migrations are pending, which of them take long, whether PostgreSQL, Node and the\n' +
    'settings fit, whether there is room, and how old the latest backup is.',
  options: {
    check: flag('--check', 'only say what the upgrade would do, and what is in its way'),
    postgres: text(
      '--postgres <folder>',
      'where the PostgreSQL that made the data is; default: where the message says',
    ),
    quiet: flag('-q, --quiet', 'no progress'),
  },
  json: true,
  details: `Exit code: 0 upgraded, or nothing is in the way (there may be warnings); 1
something is; 2 a setting is wrong.`,
  examples: [
    'sluice upgrade --check',
    'sluice upgrade',
    `sluice upgrade --check --json | jq '.[] | select(.status != "ok")'`,
  ],
  run: async (call) => {
    const { cli, command, flags, terminal, json } = call;
    const settings = readSettings(cli, command);
    const { config } = settings;
    if (flags.check) {
      const log = settings.commandLog('upgrade');
      const findings = await checkUpgrade(config, {
        fromDotEnv: cli.fromDotEnv,
        programs: flags.postgres ?? null,
        provide: () => requireData(config).then(() => provideForCommand(config, log)),
      });
      if (json) terminal.json(findings);
      else printFindings(terminal, findings);
      process.exitCode = findings.some(({ status }) => status === 'failed') ? exitCodes.failed : exitCodes.ok;
      return;
    }
    const taken = config.databaseUrl === null ? await takeOver(call, settings) : null;
    await requireData(config);
    const log = settings.commandLog('upgrade');
    const database = await provideForCommand(config, log);
    await prepareDatabase(database.url, config.redisUrl === null, log).finally(() => database.stop());
    if (json) return terminal.json({ copied: taken });
    if (taken !== null) {
      terminal.print(`Copied ${plural(taken.rows, 'row')} from PostgreSQL ${taken.from} to ${taken.to}.`);
      terminal.print(`The old data is in ${taken.aside}; remove it when you are sure.`);
    }
    terminal.print('The database is up to date.');
  },
});

interface TakenOver {
  readonly from: string;
  readonly to: string;
  readonly rows: number;
  readonly aside: string | null;
}

/** Returns null if the data was made by this PostgreSQL. */
async function takeOver(
  { flags, terminal, json }: Invocation<{ readonly postgres: string | undefined; readonly quiet: boolean }>,
  { config, commandLog }: Settings,
): Promise<TakenOver | null> {
  const { dataDir } = config;
  const majors = await readMajors(dataDir);
  const { data: from, installed: to } = majors;
  if (from === undefined || from === to) return null;
  const programs = resolve(flags.postgres ?? previousFolder(dataDir, from));
  if ((await embeddedPostgres.findPackage(programs)) === undefined)
    throw new CommandFailed(embeddedPostgres.previousAdvice(from, programs));
  const progress = createProgress(terminal, 'upgrade', flags.quiet || json);
  const show = (share: number | null, doing: string) => progress.show(share, () => doing);
  const log = commandLog('upgrade');
  const copied = await upgradeData({ dataDir, log, programs, majors }, show).finally(() => progress.end());
  return { from, to, ...copied };
}
