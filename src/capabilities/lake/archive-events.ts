import { ConflictError, TransientError } from '../../base/errors.ts';
import { type RetryPolicy, retry } from '../../base/retry.ts';
import type { RetentionContext } from '../../jobs/seam.ts';
import { type Database, databaseOn, inTransaction } from '../../postgres/database.ts';
import { eventTable } from '../../postgres/retention.ts';
import { beginArchiving, markArchived, type Retirement, readRevision } from '../../postgres/retirements.ts';
import { inSnapshot, type Snapshot } from '../../postgres/session.ts';
import { commitLake, isAbandoned, type LakeContext, removeFiles } from './commit.ts';
import { checkContent, checkLength, hashPlan, selectEvents, writeData } from './data-files.ts';
import { listData, storeData, type WrittenFile } from './file-store.ts';
import {
  type LakeMonth,
  leaveHot,
  listLakeMonths,
  type MonthState,
  readMonth,
  readSpan,
  releaseMonth,
  removeRepeated,
  settleMonth,
} from './month-store.ts';
import { contentOf, readGroups } from './read-events.ts';

/** Thrown if a concurrent erasure has changed events that were being written. */
export class Outdated extends Error {}

export const whileOutdated: RetryPolicy = { tries: 5, isTransient: (error) => error instanceof Outdated };

export interface LakeChange extends LakeMonth {
  /** `null` if there are no hot files. */
  readonly state: MonthState | null;
  /** `null` if `sluice.events` contains no more events of the month. */
  readonly nextState: Parameters<typeof settleMonth>[3] | null;
  /** `null` if the previous files stay hot. */
  readonly previousFiles: 'replaced' | 'kept' | null;
  readonly hotFiles: readonly WrittenFile[];
  /** Files that become the only copy of their events. `content` is the hash of these events. */
  readonly archiveFiles: readonly WrittenFile[];
  readonly content: string;
}

/**
 * Archives the events of a retired table. Commits only if the table has not changed since it was
 * read. If the hot files contain exactly these events, they become the archive. Otherwise, new
 * files replace the hot files.
 */
export async function archiveEvents(context: RetentionContext, retirement: Retirement): Promise<void> {
  await retry(whileOutdated, async () => {
    const attempt = await beginArchiving(context.db, retirement);
    await removeKnownEvents(context, retirement);
    const { revision, changes } = await writeAll(context, retirement);
    const isTaken = await commitChanges(context, changes, (db) =>
      markArchived(db, retirement, { attempt, revision }),
    );
    if (!isTaken) throw new Outdated('the events were changed whenever they had been archived');
  });
}

/**
 * If `begin` returns false, or if a month has changed since it was read, the written files are
 * removed, because they may contain erased events.
 */
export async function commitChanges(
  context: LakeContext,
  changes: readonly LakeChange[],
  begin: (db: Database) => Promise<boolean> = async () => true,
): Promise<boolean> {
  const { files } = context;
  const written = changes.flatMap(({ hotFiles, archiveFiles }) =>
    [...hotFiles, ...archiveFiles].map(({ ref }) => ref),
  );
  try {
    for (const { hotFiles, archiveFiles, content } of changes) {
      for (const file of hotFiles) await checkLength(files, file);
      if (archiveFiles.length > 0) await checkContent(files, archiveFiles, content);
    }
    return await inTransaction(context.pool, async ({ db }) => {
      if (!(await begin(db))) throw new ConflictError('the events have changed');
      for (const change of changes) {
        const { environmentId, month, state, nextState, previousFiles, hotFiles, archiveFiles } = change;
        const settle = (of: MonthState) =>
          nextState === null ? releaseMonth(db, change, of) : settleMonth(db, change, of, nextState);
        if (state !== null && !(await settle(state))) throw new ConflictError('the month has changed');
        if (previousFiles !== null) await leaveHot(db, change, previousFiles);
        await storeData(db, hotFiles, true);
        await storeData(db, archiveFiles);
        if (previousFiles !== 'kept') await commitLake(context, db, environmentId, [month]);
      }
      return true;
    });
  } catch (error) {
    if (!(error instanceof ConflictError || isAbandoned(error))) throw error;
    await removeFiles(context, written);
    return false;
  }
}

async function writeAll(context: RetentionContext, retirement: Retirement) {
  const { signal } = new AbortController();
  return inSnapshot(context, { name: 'sluice archive', signal }, async (snapshot) => {
    const db = databaseOn(snapshot.client);
    const revision = await readRevision(db, retirement);
    const changes: LakeChange[] = [];
    for (const month of await listLakeMonths(db, retirement, retirement.isWhole))
      changes.push(await writeRetired(context, snapshot, retirement, month));
    return { revision, changes };
  });
}

/**
 * Removes retired events that the archive already contains. Some events are received again after
 * they have been archived.
 */
async function removeKnownEvents({ db, files }: RetentionContext, retirement: Retirement): Promise<void> {
  for (const { environmentId, month } of await listLakeMonths(db, retirement, false)) {
    const archiveFiles = (await listData(db, environmentId, month)).filter(({ isHot }) => !isHot);
    if (archiveFiles.length === 0) continue;
    const { from, to } = await readSpan(db, retirement, environmentId);
    for (const file of archiveFiles) {
      if (file.lastMicros < from || file.firstMicros >= to) continue;
      for await (const group of readGroups(files, file)) {
        const columns = ['user_id', 'event_id', 'inserted_at'].map((name) => group.column(name));
        await removeRepeated(db, retirement, environmentId, await Promise.all(columns));
      }
    }
  }
}

/** If only some events of a month with hot files are retired, also writes the remaining events. */
async function writeRetired(
  context: RetentionContext,
  snapshot: Snapshot,
  { table, isWhole, retirementId }: Retirement,
  month: LakeMonth,
): Promise<LakeChange> {
  const state = await readMonth(databaseOn(snapshot.client), month);
  const retired = selectEvents(month, { events: eventTable(table) });
  const content = await hashPlan(snapshot, retired);
  const nextState = isWhole ? null : { cursor: snapshot.cursor, isReplaced: true };
  const change = { ...month, state, nextState, content, hotFiles: [] };
  // The hash of a month depends on the order of its events, which appended files do not preserve.
  if (isWhole && state?.appends === 0 && (await isInLake(context, snapshot, month, content)))
    return { ...change, previousFiles: 'kept', archiveFiles: [] };
  const place = { ...month, retirementId };
  const archiveFiles = await writeData(context, snapshot, place, retired);
  const hotFiles =
    isWhole || state === null ? [] : await writeData(context, snapshot, place, selectEvents(month));
  return { ...change, previousFiles: 'replaced', hotFiles, archiveFiles };
}

async function isInLake(
  { files, log }: RetentionContext,
  { client }: Snapshot,
  { environmentId, month }: LakeMonth,
  content: string,
): Promise<boolean> {
  const data = (await listData(databaseOn(client), environmentId, month)).filter(({ isHot }) => isHot);
  try {
    return (await contentOf(files, data)) === content;
  } catch (error) {
    if (error instanceof TransientError) throw error;
    log.warn({ err: error, month }, 'a damaged month of the lake is written anew');
    return false;
  }
}
