import type { ClientBase } from 'pg';
import { plural } from '../domain/wording.ts';
import type { FileStore } from '../files/file-store.ts';
import { compareFiles, type LakeDifference } from '../lake/lost-files.ts';
import { isMissingTable } from '../postgres/sqlstate.ts';
import { type Finding, failed, ok, warning } from './check.ts';

/** Compares the files of the lake with what the database says. `migrations` tells that a table is missing. */
export async function checkLake(client: ClientBase, files: FileStore): Promise<Finding[]> {
  try {
    return judgeLake(await compareFiles(client, files));
  } catch (error) {
    if (isMissingTable(error)) return [];
    throw error;
  }
}

export function judgeLake({ named, missing, unknown, foreign, lost }: LakeDifference): Finding[] {
  const found = [
    ...show(missing, 'missing or not as long as written'),
    ...show(unknown, 'unknown to the database'),
  ];
  if (found.length > 0) {
    const advice =
      'Was a backup restored? Bring missing files back from older versions of the bucket, if it keeps any. Then `sluice prune --mend-lake` removes unknown files and writes missing ones anew';
    const gone = plural(
      lost.reduce((sum, { events }) => sum + events, 0),
      'event',
    );
    const rest =
      lost.length === 0 ? '.' : `, but for ${gone} of ${lost.map(({ month }) => month).join(', ')}.`;
    return [failed('lake', found.join(', '), `${advice}${rest}`)];
  }
  if (foreign.length > 0) {
    const advice =
      'If another database uses this storage, give each a prefix of its own. If none does, remove the folder: no deletion reaches these files.';
    return [warning('lake', show(foreign, 'of tables that the database does not have').join(''), advice)];
  }
  return named === 0 ? [] : [ok('lake', `${plural(named, 'file')}, all present with their full length`)];
}

function show([first, ...others]: readonly string[], what: string): string[] {
  if (first === undefined) return [];
  return [`${plural(others.length + 1, 'file')} ${what} (${first}${others.length > 0 ? ' …' : ''})`];
}
