/** `sluice backup` and `sluice restore`: everything in one file, and back. */
import { access, constants, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Writable } from 'node:stream';
import { type BackupSummary, writeBackup, writeBackupFile } from '../backup/backup.ts';
import {
  assertEmptyDatabase,
  assertRestorable,
  restoreBackup,
  restoreEmbedded,
  verifyBackup,
} from '../backup/restore.ts';
import type { Config } from '../config.ts';
import { DamagedFile, FinalFailure, Interrupted } from '../domain/errors.ts';
import { formatBytes, formatDuration, plural } from '../domain/wording.ts';
import { codeOf, isFileSystemFull } from '../files/disk.ts';
import { openFileStore } from '../files/storage.ts';
import { withoutSecrets } from '../settings.ts';
import { defineCommand, flag, optional, required } from './define-command.ts';
import { CommandFailed, exitCodes, UsageError } from './errors.ts';
import { createProgress, type Progress } from './follow.ts';
import { listenForStop } from './service/processes.ts';
import { provideForCommand, requireData } from './session.ts';
import { readSettings } from './settings.ts';
import type { Terminal } from './terminal.ts';
import { formatTime } from './terminal.ts';

export const backup = defineCommand({
  name: 'backup',
  summary: 'database, stored files and keys in one file',
  description:
    'Writes the database, the stored files and the keys, as they are at one moment, into one file: a tar, compressed with\n' +
    'gzip. The service may run meanwhile. The file appears when it is complete. Files on S3 are not in it: the bucket keeps\n' +
    'them. Nor are .env, the schedules file and the inbox. Whoever has the file has the data and the keys: keep it where\n' +
    'only you can read it.',
  argument: optional(
    '[file]',
    'a new file, a folder that gets one, or - for standard output; default: this folder',
  ),
  options: {
    verify: flag(
      '--verify',
      'write nothing: read FILE to its end, and say whether the backup in it is whole',
    ),
    quiet: flag('-q, --quiet', 'no progress'),
  },
  json: 'print what it holds as JSON',
  details: `Exit code: 0 the backup is complete, or whole; 1 it failed, or is damaged; 2
wrong options; 130 stopped by Ctrl-C, and nothing was left behind.`,
  examples: [
    'sluice backup /var/backups/sluice',
    'sluice backup nightly.tar.gz && sluice backup --verify nightly.tar.gz',
    'sluice backup - | age -r age1… > sluice.tar.gz.age',
    'DATABASE_URL=postgres://… sluice backup /mnt/backups',
  ],
  run: async ({ cli, command, argument, flags, json, terminal }) => {
    const { config, commandLog } = readSettings(cli, command);
    const progress = createProgress(terminal, 'backup', flags.quiet || json);
    if (flags.verify) return verify(argument, { terminal, json, progress });
    const target = await readTarget(argument);
    await requireData(config);
    const stop = listenForStop();
    const startedAt = performance.now();
    const database = await provideForCommand(config, commandLog('backup'));
    try {
      const source = { databaseUrl: database.url, ...filesOf(config) };
      const show = (bytes: number, doing: string): void => {
        if (stop.signal.aborted) throw new Interrupted('stopped');
        progress.show(null, () => `${formatBytes(bytes)} · ${doing}`);
      };
      const summary =
        target === null
          ? { ...(await writeBackup(source, standardOutput(terminal), show)), fileBytes: null }
          : await writeBackupFile(source, target, show);
      progress.end();
      const seconds = (performance.now() - startedAt) / 1000;
      report(terminal, { ...summary, file: target, seconds }, json);
    } catch (error) {
      progress.end();
      if (!(error instanceof Interrupted)) throw error;
      terminal.inform('Stopped; nothing of the backup was left behind.');
      process.exitCode = exitCodes.interrupted;
    } finally {
      await database.stop();
    }
  },
});

interface Finished extends BackupSummary {
  /** The file; null for standard output. */
  readonly file: string | null;
  readonly fileBytes: number | null;
  readonly seconds: number;
}

/** Standard output has the backup itself where there is no file. */
function report(terminal: Terminal, { leftOut, ...done }: Finished, json: boolean): void {
  const { file, fileBytes, rows, tables, files, lost, missing, seconds, at } = done;
  if (json) {
    const text = {
      ...done,
      left_out: leftOut,
      file_bytes: fileBytes,
      fileBytes: undefined,
      seconds: Math.round(seconds * 10) / 10,
    };
    if (file === null) terminal.inform(JSON.stringify(text));
    else terminal.json(text);
    return;
  }
  const say = file === null ? terminal.inform : terminal.print;
  const what = `${plural(rows, 'row')} of ${plural(tables, 'table')}, ${plural(files, 'file')}`;
  const where = file === null ? '' : ` → ${file} (${formatBytes(fileBytes ?? 0)})`;
  say(`Backup of ${shownTime(at)}: ${what}${where}, ${formatDuration(seconds)}`);
  if (missing > lost.length)
    terminal.inform(
      `Removed during the backup, of work that had ended: ${plural(missing - lost.length, 'file')}.`,
    );
  for (const ref of lost.slice(0, mostNamed))
    terminal.inform(
      `warning: the stored file ${ref} is missing though the database lists it. The backup is without it.`,
    );
  if (lost.length > mostNamed) terminal.inform(`warning: ${lost.length - mostNamed} more are missing.`);
  if (leftOut.length > 0) {
    const named = leftOut.slice(0, mostNamed).join(', ');
    terminal.inform(
      `Not included, because they are not part of sluice: ${named}${leftOut.length > mostNamed ? ' …' : ''}`,
    );
  }
}

const mostNamed = 10;

function shownTime(at: string): string {
  return formatTime(new Date(at));
}

/** Returns null for standard output. @throws UsageError */
async function readTarget(argument: string | undefined): Promise<string | null> {
  if (argument === '-') return null;
  const given = resolve(argument ?? '.');
  const found = await stat(given).catch(() => null);
  if (found !== null && !found.isDirectory())
    throw new UsageError(`${given} exists already. A backup never replaces a file.`);
  const folder = found === null ? dirname(given) : given;
  await access(folder).catch(() => {
    throw new UsageError(`There is no folder ${folder}.`);
  });
  await access(folder, constants.W_OK).catch(() => {
    throw new UsageError(`This user may not write into ${folder}. Name another folder, or change its owner.`);
  });
  if (found === null) return given;
  const at = new Date().toISOString().slice(0, 19).replaceAll(':', '-');
  return join(given, `sluice-backup-${at}Z.tar.gz`);
}

function filesOf({ storage, maxInflatedBytes }: Config) {
  return storage.kind === 's3'
    ? { files: null, filesAt: storage.url }
    : { files: openFileStore(storage, maxInflatedBytes), filesAt: storage.directory };
}

function standardOutput(terminal: Terminal): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (terminal.closed)
        done(new CommandFailed('The backup is not complete: nobody reads it any more, or its disk is full.'));
      else terminal.write(chunk).then(() => done(), done);
    },
  });
}

async function verify(
  argument: string | undefined,
  {
    terminal,
    json,
    progress,
  }: { readonly terminal: Terminal; readonly json: boolean; readonly progress: Progress },
): Promise<void> {
  if (argument === undefined || argument === '-')
    throw new UsageError('Name the backup to look at: sluice backup --verify FILE');
  const { about, manifest } = await reading(argument, () =>
    verifyBackup(argument, (share, doing) => progress.show(share, () => doing)),
  ).finally(() => progress.end());
  const { tables, files } = manifest;
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const { sluice, database } = about;
  if (json) {
    const whole = { at: database.at, sluice, postgres: database.serverVersion, rows, files: files.count };
    return terminal.json({ file: argument, ...whole, files_included: about.files === 'included', tables });
  }
  terminal.print(
    `${argument} is whole: ${plural(rows, 'row')} of ${plural(tables.length, 'table')}, ${plural(files.count, 'file')}`,
  );
  terminal.print(
    `of ${shownTime(database.at)}, made by sluice ${sluice} on PostgreSQL ${database.serverVersion}`,
  );
  if (about.files !== 'included') terminal.print(`Stored files are not in it; they are in ${about.files}`);
}

/** Explains a fault of a backup in one sentence with its name. */
async function reading<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DamagedFile)
      throw new CommandFailed(
        `${path} is damaged, or no backup: ${error.message}. Nothing was restored from it.`,
      );
    if (error instanceof FinalFailure) throw new CommandFailed(error.message);
    if (isFileSystemFull(error))
      throw new CommandFailed(
        'The disk of the stored files is full, and nothing of the database was restored. Make room and run it again.',
      );
    if (codeOf(error) === 'EISDIR') throw new UsageError(`${path} is a folder. Name the backup in it.`);
    const missing = codeOf(error) === 'ENOENT' && error instanceof Error && 'path' in error;
    if (missing && String(error.path) === path) throw new UsageError(`There is no file ${path}.`);
    throw error;
  }
}

export const restore = defineCommand({
  name: 'restore',
  summary: 'restore a backup',
  description:
    'Reads a backup to its end, and if it is whole makes a database of it: the embedded one of DATA_DIR, or that of\n' +
    'DATABASE_URL, which must be empty. Stored files go where files are kept. The database appears only when it is complete;\n' +
    'if interrupted, run it again. A backup of an older version is brought up to date; one of a newer version is refused.\n' +
    'Unfinished work continues at the next start.',
  argument: required('<file>', 'what `sluice backup` wrote'),
  options: {
    replace: flag(
      '--replace',
      'keep the existing embedded database in another folder, whose name is printed',
    ),
    quiet: flag('-q, --quiet', 'no progress'),
  },
  json: true,
  details: `Exit code: 0 restored; 1 refused, damaged or failed, and the database is as it
was; 2 wrong options.`,
  examples: [
    'sluice restore sluice-backup-2026-11-23T03-00-00Z.tar.gz',
    'sluice restore nightly.tar.gz --data-dir /tmp/look',
    'DATABASE_URL=postgres://…/restored sluice restore nightly.tar.gz',
  ],
  run: async ({ cli, command, argument: path, flags, json, terminal }) => {
    const { config, commandLog } = readSettings(cli, command);
    const { databaseUrl, dataDir } = config;
    if (databaseUrl !== null && flags.replace)
      throw new UsageError(
        '--replace is for the embedded database. Restore into an empty database of your server.',
      );
    const progress = createProgress(terminal, 'restore', flags.quiet || json);
    const show = (share: number | null, doing: string) => progress.show(share, () => doing);
    const startedAt = performance.now();
    const restored = await reading(path, async () => {
      const target = { dataDir, replace: flags.replace, log: commandLog('restore') };
      // Before all of it is read.
      if (databaseUrl === null) await assertRestorable(target);
      else await assertEmptyDatabase(databaseUrl);
      const { about } = await verifyBackup(path, show);
      const files = openFileStore(config.storage, config.maxInflatedBytes);
      const done =
        databaseUrl === null
          ? await restoreEmbedded({ ...target, files }, path, show)
          : { ...(await restoreBackup(path, { databaseUrl, files }, show)), aside: null };
      return { ...done, at: about.database.at, filesAt: about.files === 'included' ? null : about.files };
    }).finally(() => progress.end());
    const seconds = (performance.now() - startedAt) / 1000;
    if (json) return terminal.json({ ...restored, filesAt: undefined, files_at: restored.filesAt });
    const what = `${plural(restored.rows, 'row')}, ${plural(restored.files, 'file')}`;
    const into = databaseUrl === null ? dataDir : withoutSecrets({}, databaseUrl);
    terminal.print(
      `Restored into ${into}: ${what}, as of ${shownTime(restored.at)}, ${formatDuration(seconds)}`,
    );
    if (restored.aside !== null)
      terminal.print(`The database that was there is in ${restored.aside}; remove it when you are sure.`);
    if (restored.filesAt !== null)
      terminal.inform(`Stored files are not in the backup: set STORAGE_URL to ${restored.filesAt}`);
    if (restored.lake === null || restored.lake.missing + restored.lake.unknown > 0)
      terminal.inform(
        'The lake has other files than at that moment, or they could not be listed: see docs/how-to/lake.md.',
      );
    if (config.redisUrl !== null)
      terminal.inform(
        'Empty the queue in Redis before the start (redis-cli flushdb): it belongs to the other database.',
      );
    terminal.inform(
      'Keys are those of that moment: one that was revoked since works again. Next: `sluice start`.',
    );
  },
});
