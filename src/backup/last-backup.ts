// What a data directory remembers of its latest backup, so that `sluice upgrade --check` can say how old it is.
import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface LastBackup {
  /** The moment that it shows. */
  readonly at: string;
  /** Where it was written; null: to standard output. */
  readonly file: string | null;
}

const fileIn = (dataDir: string): string => join(dataDir, 'last-backup.json');

/** Where there is no data directory, as in a container that only makes backups, nothing is remembered. */
export async function recordBackup(dataDir: string, backup: LastBackup): Promise<void> {
  const there = await stat(dataDir).catch(() => null);
  if (there === null) return;
  const draft = `${fileIn(dataDir)}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(backup)}\n`);
  await rename(draft, fileIn(dataDir));
}

/** Null: none is known of. */
export async function readLastBackup(dataDir: string): Promise<LastBackup | null> {
  try {
    return JSON.parse(await readFile(fileIn(dataDir), 'utf8')) as LastBackup;
  } catch {
    return null;
  }
}
