import { execFileSync, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { columns } from './users-file.ts';

/** Its version, or null if it is not installed. */
export function pgloaderVersion(): string | null {
  try {
    return (
      /pgloader version "([^"]+)"/.exec(execFileSync('pgloader', ['--version'], { encoding: 'utf8' }))?.[1] ??
      null
    );
  } catch {
    return null;
  }
}

/** Brings a CSV of users into `table` with pgloader as it comes. Seconds. */
export async function runPgloader(
  folder: string,
  path: string,
  databaseUrl: string,
  table: string,
): Promise<number> {
  const command = join(folder, 'users.load');
  await writeFile(
    command,
    `load csv
       from '${path}' (${columns.join(', ')})
       into ${databaseUrl}
       target table ${table}
       with skip header = 1, fields optionally enclosed by '"', fields escaped by double-quote, truncate;`,
  );
  const startedAt = performance.now();
  const child = spawn('pgloader', ['--root-dir', folder, '--quiet', command], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const code = await new Promise((resolve) => child.once('exit', resolve));
  if (code !== 0) throw new Error(`pgloader ended with ${code}`);
  return (performance.now() - startedAt) / 1_000;
}
