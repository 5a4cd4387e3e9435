import { ARCHIVE_BATCH_ROWS } from '../domain/limits.ts';
import type { FileStore } from '../files/file-store.ts';
import { readGroups } from '../lake/read-events.ts';
import type { LakeEvent } from '../lake/row-group.ts';
import type { Database } from '../postgres/database.ts';
import { listData } from '../postgres/stores/lake-files.ts';
import { type LakeMonth, listLakeMonths, readSpan, removeRepeated } from '../postgres/stores/lake-months.ts';
import type { Retirement } from '../postgres/stores/retirements.ts';

interface Context {
  readonly db: Database;
  readonly files: FileStore;
}

/** Takes events that came again after they had moved to the lake out of a retired table: the lake has each of them once. */
export async function removeKnownEvents(context: Context, retirement: Retirement): Promise<void> {
  const { db } = context;
  for (const month of await listLakeMonths(db, retirement, false)) {
    let known: LakeEvent[] = [];
    for await (const events of readKnown(context, retirement, month)) {
      known.push(...events);
      if (known.length < ARCHIVE_BATCH_ROWS) continue;
      await removeRepeated(db, retirement, month.environmentId, known);
      known = [];
    }
    if (known.length > 0) await removeRepeated(db, retirement, month.environmentId, known);
  }
}

/** Reads what the lake has of the time that the table is of. */
async function* readKnown(
  { db, files }: Context,
  retirement: Retirement,
  month: LakeMonth,
): AsyncGenerator<LakeEvent[]> {
  const data = (await listData(db, month, month.month)).filter(({ isHot }) => !isHot);
  if (data.length === 0) return;
  const { from, to } = await readSpan(db, retirement, month.environmentId);
  for (const file of data) {
    if (file.lastMicros < from || file.firstMicros >= to) continue;
    for await (const group of readGroups(files, file, { from, to })) {
      yield Array.from({ length: group.rows }, (_, row) => group.event(row));
      group.release();
    }
  }
}
