/** `sluice move`: the embedded database becomes one in a PostgreSQL of your own. */
import { join } from 'node:path';
import { type Config, givenValue } from '../config.ts';
import type { Finding } from '../doctor/check.ts';
import { hideSecrets } from '../doctor/examine.ts';
import { ConfigError } from '../domain/errors.ts';
import { formatBytes, formatDuration, plural } from '../domain/wording.ts';
import { embeddedPostgres, type MovedMark } from '../embedded-postgres/embedded-postgres.ts';
import {
  checkMove,
  type Moved,
  type MoveWish,
  measureFiles,
  measureTables,
  moveAll,
  movesFiles,
  newSettings,
  onSource,
  shownUrl,
} from '../move/move.ts';
import { connectForCopy } from '../postgres/database-copy/read-database.ts';
import { hasSchema } from '../postgres/database-copy/write-database.ts';
import { defineCommand, flag, type Invocation, text } from './define-command.ts';
import { printFindings } from './doctor.ts';
import { CommandFailed, exitCodes, explainError, UsageError } from './errors.ts';
import { createProgress } from './follow.ts';
import { listenForStop } from './service/stop-signals.ts';
import { requireData } from './session.ts';
import { type ProcessEnv, readSettings } from './settings.ts';
import type { Terminal } from './terminal.ts';
import { printTable } from './terminal.ts';

export const move = defineCommand({
  name: 'move',
  summary: 'from the embedded database to a PostgreSQL of your own',
  description:
    'Copies all that the embedded database of DATA_DIR holds into a PostgreSQL of your own, compares rows and hashes of each\n' +
    'table on both sides, and prints the settings to start with from then on. Stop the service first. The source is kept\n' +
    'unchanged and no longer starts. If interrupted, it leaves no database there: run it again.',
  options: {
    to: text('--to <url>', 'the PostgreSQL, 15 or newer; better in MOVE_TO or MOVE_TO_FILE: ps shows flags'),
    redis: text('--redis <url>', 'Redis for the queue from then on (MOVE_REDIS); by default as it is now'),
    files: text(
      '--files <place>',
      'copy the files, too: to a folder or s3://bucket/prefix (MOVE_FILES); by default they stay',
    ),
    dryRun: flag('--dry-run', 'check everything and say how much there is; write nothing'),
    undo: flag('--undo', 'let the source start again, without what was written to the target since'),
    quiet: flag('-q, --quiet', 'no progress'),
  },
  json: 'print the result as JSON',
  details: `Exit code: 0 moved, or nothing is in the way (--dry-run); 1 refused or
failed; 2 wrong options; 130 stopped by Ctrl-C. After 1 and 130 run it again.`,
  examples: [
    'MOVE_TO=postgres://sluice:…@db.example.com/sluice sluice move --dry-run',
    'MOVE_TO_FILE=/run/secrets/database_url sluice move --redis redis://cache',
    'MOVE_TO=postgres://… sluice move --files "s3://bucket?region=eu-central-1"',
    'sluice move --undo',
  ],
  run: async (invocation) => {
    const { cli, command, flags, terminal } = invocation;
    // Without a Redis in use so far, REDIS_TLS_CA is meant for the target's.
    const isOfTarget = (givenValue('REDIS_URL', cli.processEnv) ?? '') === '';
    const own: ProcessEnv = isOfTarget ? { REDIS_TLS_CA: '' } : {};
    const { config: from, commandLog } = readSettings(cli, command, own);
    requireEmbedded(from);
    await requireData(from);
    const dataDir = join(from.dataDir, 'postgres');
    if (flags.undo) return undo(terminal, dataDir);
    const to = readTarget(invocation);
    const stop = listenForStop();
    try {
      await run(invocation, { dataDir, from, to, log: commandLog('move'), signal: stop.signal });
    } catch (error) {
      if (embeddedPostgres.isInUse(error)) {
        throw new CommandFailed(
          `${error.message}\nStop the service on ${from.dataDir}, then run the move again.`,
        );
      }
      if (!stop.signal.aborted) throw error;
      terminal.inform('Stopped. Run the same command again to continue, or start the service as before.');
      process.exitCode = exitCodes.interrupted;
    }
  },
});

function requireEmbedded({ databaseUrl, dataDir }: Config): void {
  if (databaseUrl === null) return;
  throw new UsageError(
    `DATABASE_URL is set, so the database in ${dataDir} is not in use. To move it, run this without DATABASE_URL,\n` +
      'and name the target in MOVE_TO.',
  );
}

interface TargetFlags {
  readonly to: string | undefined;
  readonly redis: string | undefined;
  readonly files: string | undefined;
}

/** Reads the configuration of the target: the settings in force, with those that change. @throws ConfigError */
function readTarget({ cli, command, flags }: Invocation<TargetFlags>): MoveWish['to'] {
  const given = (name: string, value: string | undefined): string =>
    value ?? givenValue(name, cli.processEnv) ?? '';
  const wanted = {
    DATABASE_URL: given('MOVE_TO', flags.to),
    REDIS_URL: given('MOVE_REDIS', flags.redis),
    STORAGE_URL: given('MOVE_FILES', flags.files),
  };
  const own: ProcessEnv = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== ''));
  const { config } = sayingTarget(() => readSettings(cli, command, own));
  const { databaseUrl } = config;
  if (databaseUrl === null) throw new UsageError('Name the target: MOVE_TO=postgres://…, or --to.');
  return { ...config, databaseUrl };
}

/** The names of the target's settings in this command. */
const targetNames = { DATABASE_URL: 'MOVE_TO', REDIS_URL: 'MOVE_REDIS', STORAGE_URL: 'MOVE_FILES' } as const;

function inTargetNames(text: string): string {
  return Object.entries(targetNames).reduce((found, [name, here]) => found.replaceAll(name, here), text);
}

function sayingTarget<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError(inTargetNames(error.message)) : error;
  }
}

async function undo(terminal: Terminal, dataDir: string): Promise<void> {
  const mark = await embeddedPostgres.readMovedMark(dataDir);
  await embeddedPostgres.removeMovedMark(dataDir);
  if (mark === null) return terminal.inform(`The data of ${dataDir} was not moved: nothing to undo.`);
  terminal.print(`The data of ${dataDir} can be started again, as it was at ${mark.movedAt}.`);
  terminal.inform(`Stop everything that runs on ${mark.to}: neither side sees what is written to the other.`);
}

async function run(invocation: Invocation<RunFlags>, wish: MoveWish): Promise<void> {
  const { terminal, json, flags } = invocation;
  const mark = await embeddedPostgres.readMovedMark(wish.dataDir);
  if (mark !== null) {
    const isThere = await explainTarget(() => isMoved(wish.to.databaseUrl));
    const isSame = mark.to === shownUrl(wish.to.databaseUrl);
    if (!isSame || (!isThere && mark.isComplete)) {
      const gone = isSame ? ', and nothing of it is there now' : '';
      throw new CommandFailed(
        `The data was moved to ${mark.to} at ${mark.movedAt}${gone}. To move it again: sluice move --undo`,
      );
    }
    if (isThere) return printMovedBefore(invocation, wish, mark);
  }
  await onSource(wish, async (sourceUrl) => {
    const findings = hideSecrets(await explainTarget(() => checkMove(wish, sourceUrl)), wish.to);
    const isRefused = findings.some(({ status }) => status === 'failed');
    if (isRefused || flags.dryRun) return printChecked(invocation, wish, findings, sourceUrl);
    const progress = createProgress(terminal, 'move', flags.quiet || json);
    const moved = await moveAll(wish, sourceUrl, {
      onRows: ({ name, rowsExpected }, rows) =>
        progress.show(
          rowsExpected > rows ? rows / rowsExpected : null,
          () => `${name} · ${plural(rows, 'row')}`,
        ),
      onFile: ({ files, bytes }) =>
        progress.show(null, () => `${plural(files, 'file')} · ${formatBytes(bytes)}`),
    }).finally(() => progress.end());
    printMoved(invocation, wish, moved);
  });
}

async function isMoved(url: string): Promise<boolean> {
  const client = await connectForCopy(url);
  return hasSchema(client).finally(() => client.end());
}

function printMovedBefore({ terminal, json }: Invocation, wish: MoveWish, mark: MovedMark): void {
  const { to, movedAt, settings } = mark;
  if (json) {
    terminal.json({ status: 'moved_before', to, moved_at: movedAt, settings });
    return;
  }
  terminal.print(`The data was moved at ${movedAt} already; all of it is there.`);
  printSettings(terminal, wish.from, settings);
}

interface RunFlags extends TargetFlags {
  readonly dryRun: boolean;
  readonly quiet: boolean;
}

/** Errors of connecting name the settings of a service; here they are about the target. */
async function explainTarget<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (cause) {
    throw Object.assign(new CommandFailed(`The target: ${inTargetNames(explainError(cause).message)}`), {
      cause,
    });
  }
}

async function printChecked(
  { terminal, json }: Invocation,
  wish: MoveWish,
  findings: readonly Finding[],
  sourceUrl: string,
): Promise<void> {
  const isRefused = findings.some(({ status }) => status === 'failed');
  if (isRefused) process.exitCode = exitCodes.failed;
  const size = await measureTables(sourceUrl);
  const files = movesFiles(wish) ? await measureFiles(wish.from.filesDir) : null;
  if (json) {
    const status = isRefused ? 'refused' : 'checked';
    return terminal.json({ status, to: shownUrl(wish.to.databaseUrl), ...size, files, findings });
  }
  printFindings(terminal, isRefused ? findings.filter((each) => each.status !== 'ok') : findings);
  if (isRefused) return terminal.inform('Nothing was written.');
  terminal.print(`${plural(size.tables, 'table')}, ${formatBytes(size.bytes)} on disk here`);
  if (files !== null) terminal.print(`${plural(files.files, 'file')}, ${formatBytes(files.bytes)}`);
  terminal.inform('Dry run: nothing was written.');
}

function printMoved({ terminal, json }: Invocation, wish: MoveWish, { tables, files }: Moved): void {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  if (json) {
    const to = shownUrl(wish.to.databaseUrl);
    terminal.json({ status: 'moved', to, rows, tables, files, settings: newSettings(wish) });
    return;
  }
  printTable(
    terminal,
    {
      table: ({ name }) => name,
      '>rows': ({ rows }) => rows,
      '>text': ({ bytes }) => formatBytes(bytes),
      '>time': ({ seconds }) => formatDuration(seconds),
    },
    tables.filter((table) => table.rows > 0),
  );
  terminal.print('');
  const there = terminal.style('green', 'the same on both sides');
  terminal.print(
    `${plural(tables.length, 'table')}, ${plural(rows, 'row')}: counts and hashes are ${there}.`,
  );
  if (files !== null) terminal.print(`${plural(files.files, 'file')}, ${formatBytes(files.bytes)} copied.`);
  printSettings(terminal, wish.from, newSettings(wish));
}

function printSettings(
  terminal: Terminal,
  { storage }: Config,
  settings: Readonly<Record<string, string>>,
): void {
  terminal.print('From now on start with these settings in addition to your own (passwords are not shown):');
  for (const [name, value] of Object.entries(settings)) terminal.print(`  ${name}=${value}`);
  if (settings['STORAGE_URL'] === undefined && storage.kind === 'folder')
    terminal.print(`The files stay in ${storage.directory}: every process needs that folder.`);
}
