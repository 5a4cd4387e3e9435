/*
 * The files of the lake and the ledger: after a restore the ledger may be older than the files. It then names some that a deletion or a
 * compaction has removed since, and does not know those that were written since.
 */
import type pg from 'pg';
import type { FileRef, FileStore } from '../files/file-store.ts';
import { inTransaction } from '../postgres/database.ts';
import { giveUpFiles, listMonths, listRefs } from '../postgres/stores/lake-files.ts';
import { commitLake, type LakeContext } from './commit.ts';

export interface LakeDifference {
  /** Files that snapshots name. */
  readonly named: number;
  /** Those of them that are gone. */
  readonly missing: readonly FileRef[];
  /** Files below `lake/` that the ledger does not know. */
  readonly unknown: readonly FileRef[];
}

/** Compares them while both change: what is missing or unknown is so before the files are listed and after. */
export async function compareFiles(
  client: pg.Pool | pg.ClientBase,
  files: FileStore,
): Promise<LakeDifference> {
  const before = await listRefs(client);
  const there = new Set<FileRef>();
  for await (const ref of files.list('lake')) there.add(ref);
  const after = await listRefs(client);
  const named = [...after].flatMap(([ref, isNamed]) => (isNamed ? [ref] : []));
  return {
    named: named.length,
    missing: named.filter((ref) => before.get(ref) === true && !there.has(ref)),
    unknown: [...there].filter((ref) => !before.has(ref) && !after.has(ref)),
  };
}

/**
 * Makes the lake agree with its files: unknown ones go, since no deletion would reach them; what is missing is written anew by the next
 * append if the database has it, and otherwise given up. `lost`: events that are gone.
 */
export async function mendLake(context: LakeContext): Promise<LakeDifference & { readonly lost: number }> {
  const found = await compareFiles(context.pool, context.files);
  let lost = 0;
  await inTransaction(context.pool, async ({ db }) => {
    for (const { events, ...table } of await giveUpFiles(db, found.missing)) {
      lost += events;
      await commitLake(context, db, table, await listMonths(db, table));
    }
  });
  for (const ref of found.unknown) await context.files.remove(ref);
  return { ...found, lost };
}
