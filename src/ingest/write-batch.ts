import type pg from 'pg';
import { type InputError, TransientError } from '../base/errors.ts';
import { checkConstraints, type Database, inSavepoint, inTransaction } from '../postgres/database.ts';
import { isDataError } from '../postgres/sqlstate.ts';
import type { Guard } from '../postgres/uses.ts';
import { claimIdempotencyKey, type Idempotency, storeAnswer } from '../tasks/idempotency.ts';
import type { EventRow } from './event-store.ts';
import type { Guards } from './guards.ts';
import { createNamedUsers } from './profile-store.ts';
import { type ReadBatch, type Rejection, rejection } from './read-batch.ts';
import {
  type BatchItem,
  type Connection,
  type EventRecord,
  type IngestContext,
  RecordsRefused,
  type RecordWriter,
  refused,
  type UserRecord,
} from './records.ts';
import { eventWriter, isEmpty, type ProfileRows, type profileWriter } from './write-records.ts';

/**
 * Maximum number of events in a statement. A larger statement would exceed PostgreSQL's default
 * work_mem.
 */
const BATCH_STATEMENT_EVENTS = 2_000;

export interface BatchAnswer {
  readonly accepted: number;
  readonly rejected: readonly Rejection[];
}

export class PendingBatch {
  readonly environmentId: number;
  readonly bytes: number;
  readonly idempotency: Idempotency | null;
  readonly refusals: InputError[] = [];
  items: readonly BatchItem[];
  readonly #isWhole: boolean;
  #rejected: readonly Rejection[];
  /** Response to an earlier request with the same idempotency key. */
  #earlier: BatchAnswer | null = null;

  constructor(
    environmentId: number,
    { items, rejected, isWhole = false }: ReadBatch,
    bytes: number,
    idempotency: Idempotency | null = null,
  ) {
    this.environmentId = environmentId;
    this.bytes = bytes;
    this.idempotency = idempotency;
    this.#isWhole = isWhole;
    this.items = isWhole && rejected.length > 0 ? [] : items;
    this.#rejected = rejected;
  }

  /** Whether the batch is written depends on its idempotency key, so it has its own transaction. */
  get alone(): boolean {
    return this.idempotency !== null;
  }

  get hasProfiles(): boolean {
    return this.items.some(({ entity }) => entity !== 'events');
  }

  get answer(): BatchAnswer {
    // Counts items instead of records, because an item may consist of several records.
    let accepted = 0;
    for (const [at, { index }] of this.items.entries()) if (index !== this.items[at - 1]?.index) accepted++;
    return this.#earlier ?? { accepted, rejected: this.#rejected };
  }

  reject(items: ReadonlyMap<BatchItem, unknown>): void {
    const causes = new Map<number, InputError>();
    for (const [{ index }, cause] of items) if (!causes.has(index)) causes.set(index, refused(cause));
    const isLost = this.#isWhole && causes.size > 0;
    this.items = isLost ? [] : this.items.filter(({ index }) => !causes.has(index));
    this.refusals.push(...causes.values());
    const rejected = Array.from(causes, ([index, cause]) => rejection(index, cause));
    this.#rejected = [...this.#rejected, ...rejected].sort((a, b) => a.index - b.index);
  }

  answerAsBefore(answer: BatchAnswer): void {
    this.#earlier = answer;
  }
}

interface Rows {
  readonly profiles: ProfileRows;
  readonly events: readonly EventRow[];
  readonly implying: readonly EventRecord[];
}

/**
 * Writes all batches of a window in one transaction, as if each item were written separately.
 * Events are written before profiles. An event gets the company that an earlier item gives its user
 * or, if there is no such item, the stored company.
 */
export class BatchWriter {
  readonly #context: IngestContext;
  readonly #guards: Guards;
  readonly #profiles: ReturnType<typeof profileWriter>;
  readonly #events: RecordWriter<EventRecord, readonly EventRow[]>;

  constructor(context: IngestContext, guards: Guards, profiles: ReturnType<typeof profileWriter>) {
    this.#context = context;
    this.#guards = guards;
    this.#profiles = profiles;
    this.#events = eventWriter(context);
  }

  /** Writes all batches or none. A single batch is written without the items that are refused. */
  async write(batches: readonly PendingBatch[]): Promise<void> {
    const [batch, ...others] = batches;
    if (batch === undefined) return;
    try {
      await this.#writeOnce(batches);
    } catch (error) {
      if (error instanceof RecordsRefused) {
        // If the judge of an environment is unavailable, the whole batch fails.
        const causes = new Map(batches.map((each) => [each, error.causes.get(each.items[0]?.record)]));
        const failed = Array.from(causes).filter(([, cause]) => cause instanceof TransientError);
        if (failed.length > 0) throw new RecordsRefused(new Map(failed), error);
        for (const each of batches) {
          const refusedItems = each.items.filter(({ record }) => error.causes.has(record));
          each.reject(new Map(refusedItems.map((item) => [item, error.causes.get(item.record)])));
        }
        return this.write(batches);
      }
      if (!isDataError(error) || others.length > 0 || batch.items.length === 0) throw error;
      batch.reject(await this.#findRefused(batch.items));
      await this.#writeOnce(batches);
    }
  }

  #writeOnce(batches: readonly PendingBatch[]): Promise<void> {
    const items = batches.flatMap((batch) => batch.items);
    return this.#guarded(items, (guard, judged) => this.#writeItems(batches, judged, guard));
  }

  #guarded(
    items: readonly BatchItem[],
    write: (guard: Guard, items: readonly BatchItem[]) => Promise<void>,
  ): Promise<void> {
    const records = items.map(({ record }) => record);
    return this.#guards.write(records, (guard, judged) => {
      const judgedItems = () => items.map((item, at) => ({ ...item, record: judged[at] }) as BatchItem);
      return write(guard, judged === records ? items : judgedItems());
    });
  }

  async #writeItems(
    batches: readonly PendingBatch[],
    items: readonly BatchItem[],
    guard: Guard,
  ): Promise<void> {
    const rows = await this.#prepare(items);
    const [batch] = batches;
    const key = batch?.idempotency ?? null;
    if (batch === undefined) return;
    const isOfEvents = isEmpty(rows.profiles) && rows.implying.length === 0;
    if (key === null && isOfEvents && rows.events.length <= BATCH_STATEMENT_EVENTS) {
      // A single statement needs no explicit transaction.
      return this.#writeRows(this.#context.pool, rows, guard);
    }
    await inTransaction(this.#context.pool, async ({ client, db }) => {
      if (key === null || (await isFirst(db, batch, key))) await this.#writeRows(client, rows, guard);
    });
  }

  async #prepare(items: readonly BatchItem[]): Promise<Rows> {
    const profiles = items.flatMap((item) => (item.entity === 'events' ? [] : [item.record]));
    const events = eventsOf(items);
    return {
      profiles: await this.#profiles.prepare(profiles),
      events: await this.#events.prepare(events),
      implying: events.filter(({ impliesUser }) => impliesUser === true),
    };
  }

  async #writeRows(
    connection: Connection,
    { events, profiles, implying }: Rows,
    guard: Guard,
  ): Promise<void> {
    await this.#writeEvents(connection, events, guard);
    await this.#profiles.write(connection, profiles, guard);
    if (implying.length > 0) await createNamedUsers(connection, implying);
  }

  async #writeEvents(connection: Connection, events: readonly EventRow[], guard: Guard): Promise<void> {
    for (let from = 0; from < events.length; from += BATCH_STATEMENT_EVENTS) {
      await this.#events.write(connection, events.slice(from, from + BATCH_STATEMENT_EVENTS), guard);
    }
  }

  /**
   * Finds the refused items. Writes the batch in a transaction that is rolled back. If a part of
   * the batch is refused, writes each half of this part.
   */
  async #findRefused(items: readonly BatchItem[]): Promise<ReadonlyMap<BatchItem, unknown>> {
    const refusals = new Map<BatchItem, unknown>();
    const search = async (
      client: pg.PoolClient,
      guard: Guard,
      candidates: readonly BatchItem[],
    ): Promise<void> => {
      const rows = await this.#prepare(candidates);
      const write = async (): Promise<void> => {
        await this.#writeRows(client, rows, guard);
        await checkConstraints(client);
      };
      const outcome = await inSavepoint(client, write, isDataError, { rollBack: true });
      if (!('error' in outcome)) return;
      if (candidates.length === 1)
        return void refusals.set(
          candidates[0] as BatchItem,
          this.#guards.refusalOf(outcome.error) ?? outcome.error,
        );
      const middle = candidates.length >> 1;
      await search(client, guard, candidates.slice(0, middle));
      await search(client, guard, candidates.slice(middle));
    };
    await this.#guarded(items, (guard, judged) =>
      inTransaction(this.#context.pool, async ({ client }) => {
        refusals.clear();
        await search(client, guard, judged);
      }),
    );
    return refusals;
  }
}

/**
 * Claims the idempotency key of a batch. Returns false if an earlier request has claimed it. The
 * batch then gets the response to that request.
 * @throws InputError `idempotency_conflict`
 */
async function isFirst(db: Database, batch: PendingBatch, { key, digest }: Idempotency): Promise<boolean> {
  const earlier = await claimIdempotencyKey(db, batch.environmentId, key, digest, null);
  if (earlier !== null) {
    batch.answerAsBefore(earlier.answer as BatchAnswer);
    return false;
  }
  await storeAnswer(db, batch.environmentId, key, { answer: batch.answer });
  return true;
}

/** An event gets the company that an earlier item gave its user. */
function eventsOf(items: readonly BatchItem[]): readonly EventRecord[] {
  const companies = new Map<string, string>();
  const events: EventRecord[] = [];
  const ids = new Set<string>();
  for (const { entity, record } of items) {
    if (entity === 'users') {
      if (record.companyId !== null) companies.set(userKey(record), record.companyId);
    } else if (entity === 'events' && isFirstOf(ids, record)) {
      const companyId = record.companyId ?? companies.get(userKey(record)) ?? null;
      events.push(companyId === record.companyId ? record : { ...record, companyId });
    }
  }
  return events;
}

/** Only the first event of a user with this id is written. */
function isFirstOf(ids: Set<string>, { environmentId, userId, eventId }: EventRecord): boolean {
  if (eventId === null) return true;
  const size = ids.size;
  return ids.add(JSON.stringify([environmentId, userId, eventId])).size > size;
}

function userKey({ environmentId, userId }: UserRecord | EventRecord): string {
  return `${environmentId} ${userId}`;
}
