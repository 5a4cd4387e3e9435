// Stores single records and batches. `read-record.ts` and `read-batch.ts` check them, the commit
// window combines them, `write-records.ts` and `write-batch.ts` write them. Replies follow the
// commit.
import { MAX_HELD_BATCH_BYTES } from '../base/limits.ts';
import { inTransaction } from '../postgres/database.ts';
import { isDataError } from '../postgres/sqlstate.ts';
import { claimIdempotencyKey, type Idempotency } from '../tasks/idempotency.ts';
import { CommitWindow } from './commit-window.ts';
import { Guards } from './guards.ts';
import type { ReadBatch } from './read-batch.ts';
import {
  type AnyRecord,
  type BatchItem,
  type CompanyRecord,
  type EventRecord,
  type IngestContext,
  type IngestEntity,
  type ItemRecord,
  RecordsRefused,
  type RecordWriter,
  refused,
  type UserRecord,
} from './records.ts';
import { type BatchAnswer, BatchWriter, PendingBatch } from './write-batch.ts';
import { eventWriter, profileWriter } from './write-records.ts';

const BATCH_DEADLINE_MS = 30_000;

/**
 * Methods that store records resolve after the commit.
 * @throws InputError for a refused record or a reused key, TransientError
 */
export interface Ingest {
  forgetStage(environmentId: number): void;
  identifyUser(record: UserRecord, idempotency: Idempotency | null): Promise<void>;
  identifyCompany(record: CompanyRecord, idempotency: Idempotency | null): Promise<void>;
  track(record: EventRecord, idempotency: Idempotency | null): Promise<void>;
  /** Stores all valid items in order, in one transaction. `bytes` is the length of the body. */
  batch(
    environmentId: number,
    read: () => Promise<ReadBatch>,
    bytes: number,
    idempotency: Idempotency | null,
  ): Promise<BatchAnswer>;
  drained(): Promise<void>;
}

declare module '../context.ts' {
  interface System {
    readonly ingest: Ingest;
  }
}

/**
 * Number of lanes for users. All records of a user use the same lane, and a lane runs one statement
 * at a time.
 */
const userLanes = 2;
/**
 * Number of concurrent statements for events, whose order does not matter. For few events, one
 * statement is faster than two.
 */
const eventStatements = 2;
const SECOND_STATEMENT_RECORDS = 200;

/**
 * Number of concurrent statements for batches with profiles. Such a batch waits until the lanes
 * have written all earlier profiles, and later single profiles wait for the batch. So each
 * profile's records stay in order.
 */
const profileBatches = 1;

export function openIngest(context: IngestContext): Ingest {
  const guards = new Guards(context);
  const profileRows = profileWriter(context);
  const eventRows = eventWriter(context);
  const users = Array.from({ length: userLanes }, () => openWindow(context, guards, 'users', 1, profileRows));
  const companies = openWindow(context, guards, 'companies', 1, profileRows);
  const events = openWindow(context, guards, 'events', eventStatements, eventRows);
  const lanes = [...users, companies];
  const batchRows = new BatchWriter(context, guards, profileRows);
  const eventBatches = openBatchWindow(context, eventStatements, (batches) => batchRows.write(batches));
  const batches = openBatchWindow(context, profileBatches, async (some) => {
    await Promise.all(lanes.map((lane) => lane.drained()));
    await batchRows.write(some);
  });
  const arrivals = new Arrivals();
  // While an earlier batch is not written yet, the record waits behind this batch.
  const inOrder = (item: ItemRecord, byLane: () => Promise<void>): Promise<void> => {
    const commit = () => (batches.isIdle ? byLane() : behind(batches, { index: 0, ...item }));
    return arrivals.isEmpty ? commit() : arrivals.inTurn(async () => ({ end: commit() }));
  };
  return {
    forgetStage: (environmentId) => guards.forget(environmentId),
    async identifyUser(record, idempotency) {
      if (idempotency !== null) return once(context, guards, record, idempotency, profileRows);
      const lane = users[laneOf(record.userId)] ?? users[0];
      return inOrder({ entity: 'users', record }, () => (lane as CommitWindow<UserRecord>).submit(record));
    },
    async identifyCompany(record, idempotency) {
      if (idempotency !== null) return once(context, guards, record, idempotency, profileRows);
      return inOrder({ entity: 'companies', record }, () => companies.submit(record));
    },
    async track(record, idempotency) {
      if (idempotency !== null) return once(context, guards, record, idempotency, eventRows);
      return events.submit(record);
    },
    batch: (environmentId, read, bytes, idempotency) =>
      arrivals.inTurn(async () => {
        const content = await read();
        const batch = new PendingBatch(environmentId, content, bytes, idempotency);
        const isNothing = content.items.length === 0 && idempotency === null;
        const window = batch.hasProfiles ? batches : eventBatches;
        const committed = isNothing ? Promise.resolve() : window.submit(batch);
        return { end: committed.then(() => batch.answer) };
      }),
    async drained() {
      await Promise.all([...lanes, events, eventBatches, batches].map((window) => window.drained()));
    },
  };
}

function openWindow<T extends AnyRecord, Rows>(
  { pool, metrics }: IngestContext,
  guards: Guards,
  entity: IngestEntity,
  inFlight: number,
  writer: RecordWriter<T, Rows>,
): CommitWindow<T> {
  return new CommitWindow<T>({
    inFlight,
    write: (records) =>
      guards.write(records, async (guard, judged) => writer.write(pool, await writer.prepare(judged), guard)),
    joinsAt: SECOND_STATEMENT_RECORDS,
    onCommitted: (records, seconds) => metrics.windowCommitted(entity, records, seconds),
    onWaiting: (difference) => metrics.windowWaiting(entity, difference),
  });
}

function openBatchWindow(
  { metrics }: IngestContext,
  inFlight: number,
  write: (batches: readonly PendingBatch[]) => Promise<void>,
): CommitWindow<PendingBatch> {
  return new CommitWindow<PendingBatch>({
    inFlight,
    write,
    maxWaitingBytes: MAX_HELD_BATCH_BYTES,
    deadlineMs: BATCH_DEADLINE_MS,
    onCommitted: (batches, seconds) => metrics.windowCommitted('batches', batches, seconds),
    onWaiting: (difference) => metrics.windowWaiting('batches', difference),
  });
}

/**
 * Some batches take long to read. This class keeps later requests from overtaking them on the way
 * to the commit windows.
 */
class Arrivals {
  #last: Promise<unknown> = Promise.resolve();
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /**
   * Calls `enter` after the `enter` of every earlier call has ended. Then waits for the promise
   * `end`, which `enter` returned.
   */
  async inTurn<T>(enter: () => Promise<{ readonly end: Promise<T> }>): Promise<T> {
    this.#count++;
    const entered = this.#last.then(enter);
    const leave = (): void => {
      this.#count--;
    };
    this.#last = entered.then(leave, leave);
    return (await entered).end;
  }
}

async function behind(batches: CommitWindow<PendingBatch>, item: BatchItem): Promise<void> {
  const { environmentId, bytes } = item.record;
  const batch = new PendingBatch(environmentId, { items: [item], rejected: [] }, bytes);
  await batches.submit(batch);
  const [refusal] = batch.refusals;
  if (refusal !== undefined) throw refusal;
}

/** Writes a record in its own transaction, which also claims the idempotency key. */
async function once<T extends AnyRecord, Rows>(
  { pool }: IngestContext,
  guards: Guards,
  record: T,
  { key, digest }: Idempotency,
  writer: RecordWriter<T, Rows>,
): Promise<void> {
  try {
    await guards.write([record], async (guard, judged) => {
      const rows = await writer.prepare(judged);
      await inTransaction(pool, async ({ client, db }) => {
        const earlier = await claimIdempotencyKey(db, record.environmentId, key, digest, null);
        if (earlier === null) await writer.write(client, rows, guard);
      });
    });
  } catch (error) {
    if (error instanceof RecordsRefused) throw error.causes.get(record);
    throw isDataError(error) ? refused(error) : error;
  }
}

function laneOf(key: string): number {
  let hash = 0;
  for (let at = 0; at < key.length; at++) hash = (hash * 31 + key.charCodeAt(at)) | 0;
  return (hash >>> 0) % userLanes;
}
