import type { Entity } from '../../domain/entity.ts';
import { FinalFailure } from '../../domain/errors.ts';
import type { ChunkRange } from '../../domain/load.ts';
import { forEachUndated, LaterHistory, plainText } from '../../mapping/later-history.ts';
import { UNCOUNTED } from '../../mapping/row-buffer.ts';
import type { Rows } from '../../mapping/rows.ts';
import {
  findLater,
  type LaterLoad,
  readAmendedRowsOf,
  readPlaces,
} from '../../postgres/stores/amendments.ts';
import { readChunkStart, readDoneChunks } from '../../postgres/stores/chunks.ts';
import { findStored } from '../../postgres/stores/profiles.ts';
import { readRefusedRows } from '../../postgres/stores/rejects.ts';
import { type LoadSource, type Place, readLoadSource } from '../../postgres/stores/running-loads.ts';
import type { LoadContext } from '../context.ts';
import { createChunkReader } from '../read-chunk.ts';

/**
 * Gives the rows of a chunk of an amendment their place: in `rows.later` stands what they yield to. Only profiles that are stored can
 * have anything later; for these the parent's file is read once more from the first mended row on, and the files of all loads since,
 * by the code that loaded them. Single records are not in any file: since there is something to mend, they leave their times in the
 * profiles (`environments.mendable_since`). Nothing, of any other load.
 */
export async function placeRows(
  context: LoadContext,
  source: LoadSource,
  chunk: ChunkRange,
  rows: Rows,
): Promise<void> {
  const { place } = source;
  if (place === null) return;
  nameCompanies(rows);
  const places = await readPlaces(context.db, source.loadId, chunk);
  const placeOf = (record: number): number => places.get(chunk.firstRow + record) ?? 0;
  const keys = {
    users: await storedKeys(context, source, rows, 'users'),
    companies: await storedKeys(context, source, rows, 'companies'),
  };
  const first = placeOf(0);
  const last = placeOf(chunk.rowCount - 1);
  const since = (await readChunkStart(context.db, place.parentId, first, last)) ?? source.acceptedAt;
  const history = new LaterHistory(keys, placeOf, since);
  if (!history.isEmpty)
    await context.memory.withRows((others) => readLater(context, source, place, first, history, others));
  rows.later = history;
}

/** Companies are made that users name, though the user may turn out to have moved on. */
function nameCompanies(rows: Rows): void {
  if (rows.dated.rows > 0) return;
  for (let row = 0; row < rows.users.rows; row++) {
    const company = rows.users.companyOf(row);
    if (company === null || company === '') continue;
    rows.add('companies', company, '', null, UNCOUNTED, rows.users.recordOf(row));
  }
}

async function storedKeys(
  { db }: LoadContext,
  { environmentId }: LoadSource,
  rows: Rows,
  entity: Entity,
): Promise<string[]> {
  const keys = new Map<string, string>();
  forEachUndated(rows, entity, ({ key }) => keys.set(plainText(key), key));
  const stored = await findStored(db, environmentId, entity, [...keys.keys()]);
  return stored.flatMap((key) => keys.get(key) ?? []);
}

async function readLater(
  context: LoadContext,
  { loadId }: LoadSource,
  { parentId }: Place,
  firstRow: number,
  history: LaterHistory,
  others: Rows,
): Promise<void> {
  for (const later of await findLater(context.db, parentId, loadId)) {
    const { loadId: laterId, position } = later;
    const source = await readLoadSource(context.db, laterId);
    if (source.fileRef === null) throw expired(source.jobId);
    const reader = createChunkReader(source, context.files, others);
    const chunks = await readDoneChunks(context.db, laterId, position === 'parent' ? firstRow : 0);
    for (const range of chunks) {
      const placeOf = await placesOf(context, later, range);
      history.add(await reader.read(range), placeOf);
    }
  }
}

/** Where the records of a chunk stand; null for those that count for nothing, or by another record. */
async function placesOf(
  { db }: LoadContext,
  { loadId, position }: LaterLoad,
  range: ChunkRange,
): Promise<(record: number) => number | null> {
  if (position === 'sibling') {
    const places = await readPlaces(db, loadId, range);
    return (record) => places.get(range.firstRow + record) ?? null;
  }
  const refused = await readRefusedRows(db, loadId, range);
  const amended = await readAmendedRowsOf(db, loadId, range);
  const counts = (row: number): boolean => !refused.has(row) && !amended.has(row);
  return (record) => {
    const row = range.firstRow + record;
    if (!counts(row)) return null;
    return position === 'parent' ? row : Number.POSITIVE_INFINITY;
  };
}

function expired(jobId: string): Error {
  const message = `the file of job ${jobId} has expired, and with it what it says of the mended records; send them with wins=true to load them as of now`;
  return new FinalFailure('history_expired', message);
}
