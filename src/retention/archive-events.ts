import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { ConflictError, TransientError } from '../domain/errors.ts';
import { LAKE_KEPT_APPENDS, MAX_ARCHIVE_TRIES } from '../domain/limits.ts';
import { readText } from '../export/write/lake-rows.ts';
import type { FilePlan } from '../export/write/write-export.ts';
import { commitLake, isAbandoned, type LakeContext } from '../lake/commit.ts';
import { type Database, databaseOn, inTransaction } from '../postgres/database.ts';
import { inSnapshot, type Snapshot } from '../postgres/session.ts';
import { forgetFile, listData, storeData } from '../postgres/stores/lake-files.ts';
import {
  type LakeMonth,
  leaveHot,
  listLakeMonths,
  type MonthState,
  readMonth,
  releaseMonth,
  settleMonth,
} from '../postgres/stores/lake-months.ts';
import { eventTable } from '../postgres/stores/retention.ts';
import {
  beginArchiving,
  markArchived,
  type Retirement,
  readRevision,
} from '../postgres/stores/retirements.ts';
import { checkContent, checkLength, contentOf, type NewData, selectEvents, writeData } from './data-files.ts';
import { removeKnownEvents } from './known-events.ts';

export interface RetentionContext extends LakeContext {
  readonly log: Logger;
  readonly config: Pick<Config, 'eventRetentionDays' | 'lake'>;
}

/** A change of the lake: a month of one environment, as one snapshot shows it. */
export interface LakeChange extends LakeMonth {
  /** The state of its hot files in the snapshot; null: there are none. */
  readonly state: MonthState | null;
  /** null: it has left `sluice.events`. */
  readonly next: Parameters<typeof settleMonth>[3] | null;
  /** The fate of the hot files that there are; null: they stay. */
  readonly before: 'replaced' | 'kept' | null;
  readonly hot: readonly NewData[];
  /** What will be left of their events. */
  readonly cold: readonly NewData[];
}

/**
 * Moves what a retired table holds into the lake, in one transaction with the commit of the lake, and only if nobody has changed it
 * meanwhile. Hot files that hold exactly the events of the table are left as they are; otherwise they are replaced
 * by files that are written of the table and compared with it.
 */
export async function archiveEvents(context: RetentionContext, retirement: Retirement): Promise<void> {
  for (let tries = 0; tries < MAX_ARCHIVE_TRIES; tries++) {
    const attempt = await beginArchiving(context.db, retirement);
    await removeKnownEvents(context, retirement);
    const { revision, changes } = await writeAll(context, retirement);
    const isTaken = await commitChanges(context, changes, (db) =>
      markArchived(db, retirement, { attempt, revision }),
    );
    if (isTaken) return;
  }
  throw new Error('the events were changed whenever they had been archived');
}

/**
 * Takes all changes in one transaction, or none: if `begin` returns false, or a month has changed since it was read. Then the files go at
 * once, since they may hold who was deleted meanwhile.
 */
export async function commitChanges(
  context: LakeContext,
  changes: readonly LakeChange[],
  begin: (db: Database) => Promise<boolean> = async () => true,
): Promise<boolean> {
  const { files } = context;
  const written = changes.flatMap(({ hot, cold }) => [...hot, ...cold]);
  try {
    for (const { hot, cold } of changes) {
      for (const file of hot) await checkLength(files, file);
      for (const file of cold) await checkContent(files, file);
    }
    return await inTransaction(context.pool, async ({ db }) => {
      if (!(await begin(db))) throw new ConflictError('the events have changed');
      for (const change of changes) {
        const { state, next, before, hot, cold } = change;
        const settle = (of: MonthState) =>
          next === null ? releaseMonth(db, change, of) : settleMonth(db, change, of, next);
        if (state !== null && !(await settle(state))) throw new ConflictError('the month has changed');
        if (before !== null) await leaveHot(db, change, before);
        await storeData(db, hot, true);
        await storeData(db, cold);
        if (before !== 'kept') await commitLake(context, db, change, [change.month]);
      }
      return true;
    });
  } catch (error) {
    if (!(error instanceof ConflictError || isAbandoned(error))) throw error;
    for (const { ref } of written) {
      await files.remove(ref);
      await forgetFile(context.db, ref);
    }
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

/** If something of the month stays in `sluice.events`, and is in the lake, that is written anew too. */
async function writeRetired(
  context: RetentionContext,
  snapshot: Snapshot,
  { table, isWhole, retirementId }: Retirement,
  month: LakeMonth,
): Promise<LakeChange> {
  const state = await readMonth(databaseOn(snapshot.client), month);
  const change = {
    ...month,
    state,
    next: isWhole ? null : { cursor: snapshot.cursor, isWhole: true },
    hot: [],
  };
  const place = { ...month, retirementId };
  const retired = selectEvents(month, { events: eventTable(table) });
  if (isWhole && state !== null && (await isMirrored(context, snapshot, month, { state, retired })))
    return { ...change, before: 'kept', cold: [] };
  const cold = await writeData(context, snapshot, place, retired);
  const hot = isWhole || state === null ? [] : await writeData(context, snapshot, place, selectEvents(month));
  return { ...change, before: 'replaced', hot, cold };
}

/** Tells whether the hot files of a month hold the events of the retired table and no others. */
async function isMirrored(
  { files, log }: RetentionContext,
  { client }: Snapshot,
  month: LakeMonth,
  { state, retired }: { readonly state: MonthState; readonly retired: FilePlan },
): Promise<boolean> {
  if (state.appends > LAKE_KEPT_APPENDS) return false;
  const data = (await listData(databaseOn(client), month, month.month)).filter(({ isHot }) => isHot);
  const mirrored = await contentOf(readText(files, data)).catch((error: unknown) => {
    if (error instanceof TransientError) throw error;
    log.warn({ err: error, month: month.month }, 'a damaged month of the lake is written anew');
    return null;
  });
  if (mirrored === null) return false;
  const stored = await contentOf(retired.blocks(client, new AbortController().signal));
  return (
    stored.content === mirrored.content && mirrored.rows === data.reduce((sum, { rows }) => sum + rows, 0)
  );
}
