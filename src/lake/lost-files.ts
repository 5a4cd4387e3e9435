/*
 * The files of the lake and the ledger: after a restore the ledger may be older than the files. It then names some that a deletion or a
 * compaction has removed since, and does not know those that were written since.
 */
import type pg from 'pg';
import { type FileRef, type FileStore, hashFile, MissingFileError } from '../files/file-store.ts';
import { inTransaction } from '../postgres/database.ts';
import { giveUpFiles, listMonths, listRefs } from '../postgres/stores/lake-files.ts';
import { commitLake, type LakeContext } from './commit.ts';

export interface LakeDifference {
  /** Files that snapshots name. */
  readonly named: number;
  /** Those of them that are gone, or not as they were written. */
  readonly missing: readonly FileRef[];
  /** Files of our tables that the ledger does not know. */
  readonly unknown: readonly FileRef[];
  /** Files of tables that the ledger does not know: those of another database, or newer than the backup. */
  readonly foreign: readonly FileRef[];
  /** By month (YYYY-MM), the events that only missing files held. */
  readonly lost: readonly { readonly month: string; readonly events: number }[];
}

/**
 * Compares them while both change: what is missing or unknown is so before the files are listed and after. Files have their length, and if
 * they are read also the content, that they were written with.
 */
export async function compareFiles(
  client: pg.Pool | pg.ClientBase,
  files: FileStore,
  areRead = false,
): Promise<LakeDifference> {
  const before = await listRefs(client);
  const there = new Map<FileRef, number>();
  for await (const { ref, bytes } of files.list('lake')) there.set(ref, bytes);
  const after = await listRefs(client);
  const named = [...after.files].filter(([, { isNamed }]) => isNamed);
  const missing: typeof named = [];
  for (const each of named) {
    const [ref, { bytes, sha256 }] = each;
    if (before.files.get(ref)?.isNamed !== true) continue;
    const isThere = there.has(ref) && (bytes === null || there.get(ref) === bytes);
    const isWhole = isThere && (!areRead || sha256 === null || (await hasHash(files, ref, sha256)));
    if (!isWhole) missing.push(each);
  }
  const lost = new Map<string, number>();
  for (const [, { month, coldEvents }] of missing)
    if (coldEvents > 0) lost.set(month, (lost.get(month) ?? 0) + coldEvents);
  const unknown = [...there.keys()].filter((ref) => !before.files.has(ref) && !after.files.has(ref));
  const isOurs = (ref: FileRef): boolean => after.folders.has(ref.split('/')[1] ?? '');
  return {
    named: named.length,
    missing: missing.map(([ref]) => ref),
    unknown: unknown.filter(isOurs),
    foreign: unknown.filter((ref) => !isOurs(ref)),
    lost: [...lost].sort().map(([month, events]) => ({ month, events })),
  };
}

/** Reads a file. One that is gone now was replaced while others were read. */
function hasHash(files: FileStore, ref: FileRef, sha256: string): Promise<boolean> {
  return hashFile(files, ref).then(
    (hash) => hash === sha256,
    (error: unknown) => {
      if (error instanceof MissingFileError) return true;
      throw error;
    },
  );
}

/**
 * Makes the lake agree with its files: unknown ones go, since no deletion would reach them; what is missing or damaged is written anew by
 * the next append if the database has it, and otherwise given up. Files of other tables stay: they may be another database's.
 */
export async function mendLake(context: LakeContext): Promise<LakeDifference> {
  const found = await compareFiles(context.pool, context.files, true);
  for (const ref of found.unknown) await context.files.remove(ref);
  // At the end: whoever is killed before this finds the losses again.
  await inTransaction(context.pool, async ({ db }) => {
    for (const table of await giveUpFiles(db, found.missing))
      await commitLake(context, db, table, await listMonths(db, table));
  });
  return found;
}
