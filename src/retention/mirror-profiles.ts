import { type Entity, entities } from '../domain/entity.ts';
import { everything } from '../domain/export.ts';
import { MAX_ARCHIVE_TRIES, PROFILE_PART_BYTES } from '../domain/limits.ts';
import { selectValues } from '../export/write/page.ts';
import { type FilePlan, planRows } from '../export/write/write-export.ts';
import { commitLake, isAbandoned } from '../lake/commit.ts';
import { bitsOf } from '../lake/id-filter.ts';
import { compileForCopy } from '../postgres/copy-out.ts';
import { type Database, databaseOn, inTransaction } from '../postgres/database.ts';
import { inSnapshot } from '../postgres/session.ts';
import { listEnvironments } from '../postgres/stores/environments.ts';
import { abandonUnfinished, findHolders, replaceData, storeData } from '../postgres/stores/lake-files.ts';
import {
  findChangedRanges,
  listRanges,
  type ProfileRange,
  type ProfileTable,
  profilesIn,
  raiseRevision,
  readRevision,
} from '../postgres/stores/lake-profiles.ts';
import { openTable } from '../postgres/stores/lake-tables.ts';
import type { RetentionContext } from './archive-events.ts';
import { checkLength, type NewData, writeData } from './data-files.ts';

/*
 * Tables of profiles in the lake. A file holds all profiles of a range of ids; it is written anew, as they are in the database, when one
 * of them has changed or gone. So a refresh costs what has changed, and a deletion one file, and neither has to know what was before.
 */

interface MirrorContext extends Pick<RetentionContext, 'pool' | 'db' | 'files' | 'log'> {
  /** The length of a file; default: `PROFILE_PART_BYTES`. */
  readonly partBytes?: number;
}

/** Brings the tables of profiles of all environments up to date. */
export async function mirrorProfiles(context: MirrorContext, signal?: AbortSignal): Promise<void> {
  for (const { environmentId } of await listEnvironments(context.db)) {
    for (const name of entities) {
      const table = { environmentId, name };
      await openTable(context.db, table);
      await rewriteRanges(context, table, {
        signal,
        isRefresh: true,
        async choose(db) {
          if ((await listRanges(db, table)).length > 0) return findChangedRanges(db, table);
          return [{ fileId: null, from: null, to: null }];
        },
        commit: (work) => inTransaction(context.pool, ({ db }) => work(db)),
      });
    }
  }
}

/** Takes all profiles out of the lake. */
export async function removeProfiles(context: MirrorContext): Promise<void> {
  for (const { environmentId } of await listEnvironments(context.db)) {
    for (const name of entities) {
      const table = { environmentId, name };
      await inTransaction(context.pool, async ({ db }) => {
        const held = (await listRanges(db, table)).flatMap(({ fileId }) => fileId ?? []);
        if (held.length === 0 || !(await raiseRevision(db, table))) return;
        for (const fileId of held) await replaceData(db, { fileId });
        await commitLake(context, db, table, [null]);
      });
    }
  }
}

/**
 * Writes anew the files that may hold deleted profiles, which are gone from the database, or users of deleted companies. What a refresh
 * has read before is not committed any more.
 */
export async function eraseProfiles(
  context: MirrorContext,
  table: ProfileTable,
  {
    entity,
    ids,
    ...how
  }: Pick<Rewriting, 'commit' | 'signal'> & { readonly entity: Entity; readonly ids: readonly string[] },
): Promise<void> {
  if (!(await raiseRevision(context.db, table))) return;
  await abandonUnfinished(context.db, table);
  await rewriteRanges(context, table, {
    ...how,
    isRefresh: false,
    async choose(db) {
      const ranges = await listRanges(db, table);
      const holders = await findHolders(db, ranges, bitsOf(entity, ids));
      return ranges.filter(({ fileId }) => fileId !== null && holders.has(fileId));
    },
  });
}

interface Rewriting {
  readonly signal?: AbortSignal | undefined;
  /** The table is as the snapshot then. */
  readonly isRefresh: boolean;
  choose(db: Database): Promise<readonly ProfileRange[]>;
  /** Does `work` in a transaction. */
  commit(work: (db: Database) => Promise<boolean>): Promise<boolean>;
}

async function rewriteRanges(
  context: MirrorContext,
  table: ProfileTable,
  { signal = new AbortController().signal, isRefresh, choose, commit }: Rewriting,
): Promise<void> {
  for (let tries = 0; tries < MAX_ARCHIVE_TRIES; tries++) {
    const read = await inSnapshot(context, { name: 'sluice lake', signal }, async (snapshot) => {
      const db = databaseOn(snapshot.client);
      const expected = await readRevision(db, table);
      const ranges = await choose(db);
      const written: NewData[] = [];
      const place = { ...table, month: null, retirementId: null };
      for (const range of ranges) {
        const plan = planRange(table, range);
        written.push(
          ...(await writeData(context, snapshot, place, plan, context.partBytes ?? PROFILE_PART_BYTES)),
        );
      }
      return { ranges, written, state: { expected, cursor: isRefresh ? snapshot.cursor : null } };
    });
    const replaced = read.ranges.flatMap(({ fileId }) => fileId ?? []);
    if (replaced.length + read.written.length === 0) return;
    try {
      for (const file of read.written) await checkLength(context.files, file);
      const isTaken = await commit(async (db) => {
        if (!(await raiseRevision(db, table, read.state))) return false;
        for (const fileId of replaced) await replaceData(db, { fileId });
        await storeData(db, read.written);
        await commitLake(context, db, table, [null]);
        return true;
      });
      if (isTaken) return;
    } catch (error) {
      if (!isAbandoned(error)) throw error;
    }
    // They may hold what was deleted.
    await abandonUnfinished(context.db, table);
  }
  throw new Error('profiles were deleted whenever they had been written to the lake');
}

function planRange(table: ProfileTable, range: ProfileRange): FilePlan {
  const { environmentId, name } = table;
  const profiles = profilesIn(table, range);
  const filter = { environmentId, request: everything, segment: null, excludedSegments: [], profiles };
  const select = compileForCopy(selectValues(name, filter));
  return { ...planRows(name, everything, select), content: null };
}
