import { ConflictError } from '../base/errors.ts';
import { byEventKind, type EventKind, eventKinds } from '../domain/entity.ts';
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
import { renewTask } from '../tasks/store.ts';
import { inTaskTransaction } from '../tasks/worker-store.ts';
import { readChunkRange } from './chunk-store.ts';
import type { LoadContext } from './context.ts';
import type { IdCounter } from './map/event-buffer.ts';
import { eventKey } from './map/key-table.ts';
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
import { type ChunkReader, createStoringReader } from './read-chunk.ts';
import { readRefusedRows } from './rejects/store.ts';
import { type LoadSource, readLoadSource } from './running-store.ts';

const lostClaim = 'another worker finishes the load, or it has ended';

/**
 * Corrects events that several chunks contain, and their counts. Equal events without an id are
 * added as often as they occur in the file. If events have the same id, the first one in the file
 * is stored. The transaction of each chunk also deletes the data for the replay of that chunk, so
 * an interrupted replay continues with the remaining chunks.
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
  for (const chunkNo of chunks) await replayChunk(context, claim, source, chunkNo, reader);
}

async function replayChunk(
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
  const counted = batchOf(rows, repeats.more);
  const replacing = batchOf(rows, repeats.replacing);
  const corrections = repeats.corrections(rows);
  const surplus = batchOf(rows, repeats.surplus);
  // In a dry run, no event is stored. The chunk is read again without `repeats` to find out what
  // the chunk has counted.
  const original = source.dryRun ? batchOf(await reader.read(range), repeats.more) : null;
  await inTaskTransaction(pool, claim, async (transaction) => {
    const added =
      original === null
        ? await addRepeats(transaction, source, chunkNo, counted, replacing)
        : await classifyRepeats(transaction, source, chunkNo, { counted, original, surplus });
    const all = withAdded(corrections, added);
    if (!(await endEventReplay(transaction.db, source.loadId, chunkNo, all)))
      throw new ConflictError(lostClaim);
    if (!(await renewTask(transaction.db, claim))) throw new ConflictError(lostClaim);
  });
}

function batchOf({ events }: Rows, records: ReadonlySet<number>): EventBatch {
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
 * Returns how many more events a load would add than the dry run of the chunk has counted. For a
 * plan, also corrects the planned events.
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

/** Finds the records of a chunk whose events other chunks also contain, while the chunk is read. */
class Repeats implements IdCounter {
  /**
   * Records without an id whose events other chunks also contain. Each of these events must be
   * added.
   */
  readonly more = new Set<number>();
  /**
   * Records with an id under which a later chunk has already stored an event. That event must be
   * replaced.
   */
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
    // If several events of this chunk have the same id, only the first one is corrected. The chunk
    // has already counted the others as superseded.
    if (seen > 0) return 0;
    if (repeat.rowsBefore > 0) this.#superseded.set(record, repeat.isWritten);
    else this.replacing.add(record);
    return 0;
  }

  /** Records whose events were counted as added, although an earlier chunk contains their id. */
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
