import { byEventKind, type EventKind, entities, eventKinds } from '../domain/entity.ts';
import {
  addOutcomes,
  type ChunkRange,
  keepsPlan,
  noOutcomesByKind,
  type Outcomes,
  type OutcomesByKind,
} from '../domain/load.ts';
import { type TaskClaim, taskFields } from '../domain/task.ts';
import type { Transaction } from '../postgres/database.ts';
import { holdTask, LostClaim } from '../tasks/store.ts';
import { inTaskTransaction } from '../tasks/worker-store.ts';
import { readChunkRange, recordWritten } from './chunk-store.ts';
import type { LoadContext } from './context.ts';
import { eventKey, type IdCounter } from './map/event-keys.ts';
import type { Rows } from './map/rows.ts';
import {
  type AddedEvents,
  classifyEvents,
  type EventBatch,
  mergeEvents,
  replaceEvents,
} from './merge/add-events.ts';
import {
  type EventRepeat,
  endEventReplay,
  eventChunksToReplay,
  readEventRepeats,
} from './merge/event-repeats.ts';
import { prepareIncoming } from './merge/incoming.ts';
import { copyBatch, remergeIncoming } from './merge/merge-batch.ts';
import { chunksToReplay, keepReplayed } from './merge/repeats.ts';
import { batchOf } from './merge-rows.ts';
import { replanIncoming } from './plans/plan-batch.ts';
import { type ChunkReader, createStoringReader } from './read-chunk.ts';
import { readRefusedRows } from './rejects/store.ts';
import { type LoadSource, readLoadSource } from './running-store.ts';

/**
 * Repeats the merge for some keys. Chunks are merged in any order, so an older record may have
 * replaced a newer one with the same key. This function may be interrupted or repeated.
 */
export async function replayLoad(context: LoadContext, claim: TaskClaim): Promise<void> {
  const chunks = await chunksToReplay(context.db, claim.subjectId);
  if (chunks.length === 0) return;
  const source = await readLoadSource(context, claim.subjectId);
  context.log.info(
    { ...taskFields(claim), chunks: chunks.length },
    'replaying keys written out of file order',
  );
  const reader = await createStoringReader(context, source);
  for (const chunkNo of chunks) {
    const range = await readChunkRange(context.db, claim.subjectId, chunkNo);
    const refused = await readRefusedRows(context.db, claim.subjectId, range);
    const isAccepted = (record: number) => !refused.has(range.firstRow + record);
    const rows = await reader.read(range);
    await replayChunk(context, claim, source, chunkNo, rows, isAccepted);
  }
}

async function replayChunk(
  context: LoadContext,
  claim: TaskClaim,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  isAccepted: (record: number) => boolean,
): Promise<void> {
  await inTaskTransaction(context.pool, claim, async (transaction) => {
    const { client, db } = transaction;
    await prepareIncoming(client);
    for (const entity of entities) {
      const batch = batchOf(source, chunkNo, rows, entity, isAccepted);
      if (batch.text.length === 0) continue;
      await copyBatch(transaction, batch);
      if ((await keepReplayed(db, claim.subjectId, entity)) === 0) continue;
      const scope = { ...batch.scope, counted: 'none', keepKeys: false } as const;
      await (source.dryRun ? replanIncoming : remergeIncoming)(db, entity, scope);
    }
    await recordWritten(db, claim.subjectId, chunkNo);
    await holdTask(db, claim);
  });
}

/**
 * Corrects events that several chunks contain, and their counts. Equal events without an id are
 * added as often as the file has them. Of events with the same id, the first one is stored. A
 * replay may be interrupted, because the transaction of a chunk also deletes the data for its
 * replay.
 */
export async function replayEvents(context: LoadContext, claim: TaskClaim): Promise<void> {
  const chunks = await eventChunksToReplay(context.db, claim.subjectId);
  if (chunks.length === 0) return;
  context.log.info(
    { ...taskFields(claim), chunks: chunks.length },
    'replaying events that stand in several chunks',
  );
  const source = await readLoadSource(context, claim.subjectId);
  const reader = await createStoringReader(context, source);
  for (const chunkNo of chunks) await replayEventChunk(context, claim, source, chunkNo, reader);
}

async function replayEventChunk(
  context: LoadContext,
  claim: TaskClaim,
  source: LoadSource,
  chunkNo: number,
  reader: ChunkReader,
): Promise<void> {
  const { db, pool, memory } = context;
  const range = await readChunkRange(db, source.loadId, chunkNo);
  const repeats = new Repeats(
    await readEventRepeats(db, source.loadId, chunkNo),
    await readRefusedRows(db, source.loadId, range),
    range,
  );
  const rows = await reader.read(range, { counter: repeats });
  if (!source.dryRun) await memory.eventPartitions.ensure(pool, [...rows.events.months]);
  const counted = eventBatch(rows, repeats.more);
  const replacing = eventBatch(rows, repeats.replacing);
  const corrections = repeats.corrections(rows);
  const surplus = eventBatch(rows, repeats.surplus);
  // A dry run stores no events. The chunk is therefore read again without `repeats`, to find out
  // what it has counted.
  const original = source.dryRun ? eventBatch(await reader.read(range), repeats.more) : null;
  await inTaskTransaction(pool, claim, async (transaction) => {
    const added =
      original === null
        ? await addRepeats(transaction, source, chunkNo, counted, replacing)
        : await classifyRepeats(transaction, source, chunkNo, { counted, original, surplus });
    const all = withAdded(corrections, added);
    await holdTask(transaction.db, claim);
    if (!(await endEventReplay(transaction.db, source.loadId, chunkNo, all))) throw new LostClaim();
  });
}

function eventBatch({ events }: Rows, records: ReadonlySet<number>): EventBatch {
  const includes = (record: number) => records.has(record);
  return { text: events.text(includes), ids: events.hashedIdText(includes), contentHashes: null };
}

async function addRepeats(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  counted: EventBatch,
  replacing: EventBatch,
): Promise<AddedEvents> {
  const added = await mergeEvents(transaction, { ...source, chunkNo, keepKeys: false }, counted);
  await replaceEvents(transaction, replacing);
  return added;
}

/**
 * Returns how many more events a load would add than the dry run counted. If the dry run is a plan,
 * also corrects the plan.
 */
async function classifyRepeats(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  { counted, original, surplus }: Readonly<Record<'counted' | 'original' | 'surplus', EventBatch>>,
): Promise<AddedEvents> {
  const scope = { ...source, chunkNo, keepKeys: false };
  const isPlan = keepsPlan(source.pass);
  const actual = await classifyEvents(transaction, scope, counted, isPlan ? 1 : 0);
  const expected = await classifyEvents(transaction, scope, original, isPlan ? -1 : 0);
  if (isPlan) await classifyEvents(transaction, scope, surplus, -1);
  return byEventKind((kind) => actual[kind] - expected[kind]);
}

function withAdded(corrections: OutcomesByKind, added: AddedEvents): OutcomesByKind {
  const corrected = (kind: EventKind) =>
    addOutcomes(corrections[kind], { inserted: added[kind], unchanged: -added[kind] });
  return { ...corrections, ...byEventKind(corrected) };
}

/** Finds the records whose events other chunks also contain, while their chunk is read. */
class Repeats implements IdCounter {
  /** Records without an id. Each of their events must be added. */
  readonly more = new Set<number>();
  /** Records with an id under which a later chunk has stored an event, which must be replaced. */
  readonly replacing = new Set<number>();
  /**
   * Records with an id that an earlier chunk also contains. The value is true if this chunk has
   * added the event.
   */
  readonly #superseded = new Map<number, boolean>();
  readonly #seen = new Map<bigint, number>();
  readonly #repeats: ReadonlyMap<bigint, EventRepeat>;
  readonly #refused: ReadonlySet<number>;
  readonly #range: ChunkRange;

  constructor(
    repeats: ReadonlyMap<bigint, EventRepeat>,
    refusedRows: ReadonlySet<number>,
    range: ChunkRange,
  ) {
    this.#repeats = repeats;
    this.#refused = refusedRows;
    this.#range = range;
  }

  next(id: string, isGiven: boolean, record: number): number {
    if (this.#refused.has(this.#range.firstRow + record)) return 0;
    const hash = eventKey(id, isGiven);
    const repeat = this.#repeats.get(hash);
    if (repeat === undefined) return 0;
    const seen = this.#seen.get(hash) ?? 0;
    this.#seen.set(hash, seen + 1);
    if (!isGiven) {
      this.more.add(record);
      return repeat.rowsBefore + seen;
    }
    // The chunk has already counted the further events with this id as superseded.
    if (seen > 0) return 0;
    if (repeat.rowsBefore > 0) this.#superseded.set(record, repeat.isWritten);
    else this.replacing.add(record);
    return 0;
  }

  /** Records that were counted as added, although an earlier chunk contains their id. */
  get surplus(): ReadonlySet<number> {
    return new Set([...this.#superseded].flatMap(([record, isWritten]) => (isWritten ? [record] : [])));
  }

  corrections({ kinds }: Rows): OutcomesByKind {
    const corrections: Record<keyof OutcomesByKind, Outcomes> = { ...noOutcomesByKind };
    const correct = (record: number, correction: Partial<Outcomes>): void => {
      const kind = eventKinds.find((eventKind) => eventKind === kinds.of(record));
      if (kind !== undefined) corrections[kind] = addOutcomes(corrections[kind], correction);
    };
    for (const [record, isWritten] of this.#superseded) {
      correct(record, isWritten ? { inserted: -1, superseded: 1 } : { unchanged: -1, superseded: 1 });
    }
    for (const record of this.replacing) correct(record, { inserted: 1, unchanged: -1 });
    return corrections;
  }
}
