import type { ClientBase } from 'pg';
import { plural } from '../domain/wording.ts';
import type { FileStore } from '../files/file-store.ts';
import { compareFiles, type LakeDifference } from '../lake/lost-files.ts';
import { isMissingTable } from '../postgres/sqlstate.ts';
import { type Finding, failed, ok } from './check.ts';

/** Compares the files of the lake with what the database says. `migrations` tells that a table is missing. */
export async function checkLake(client: ClientBase, files: FileStore): Promise<Finding[]> {
  try {
    return judgeLake(await compareFiles(client, files));
  } catch (error) {
    if (isMissingTable(error)) return [];
    throw error;
  }
}

export function judgeLake({ named, missing, unknown }: LakeDifference): Finding[] {
  const found = [...show(missing, 'missing'), ...show(unknown, 'unknown to the database')].join(', ');
  if (found === '') return named === 0 ? [] : [ok('lake', `${plural(named, 'file')}, all there`)];
  const advice =
    'Was a backup restored? Bring missing files back from older versions of the bucket, if it keeps any. If no other database uses this storage, `sluice prune --mend-lake` then removes unknown files, writes missing ones anew, and gives up events that nothing else has.';
  return [failed('lake', found, advice)];
}

function show([first, ...others]: readonly string[], what: string): string[] {
  if (first === undefined) return [];
  return [`${plural(others.length + 1, 'file')} ${what} (${first}${others.length > 0 ? ' …' : ''})`];
}
