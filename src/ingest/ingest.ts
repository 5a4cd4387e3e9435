/*
 * Single records and small batches: identify and track. `read-record.ts` checks a body, the commit window
 * gathers what arrives together into one transaction, `write-profiles.ts` and `write-events.ts` write it.
 * Promise: a request is acknowledged after its commit.
 */
import { idempotencyConflict } from '../domain/errors.ts';
import { inTransaction } from '../postgres/database.ts';
import { isDataError } from '../postgres/sqlstate.ts';
import { claimIdempotencyKey } from '../postgres/stores/idempotency.ts';
import { CommitWindow } from './commit-window.ts';
import {
  type CompanyRecord,
  type EventRecord,
  type IngestContext,
  type IngestEntity,
  type RecordWriter,
  refused,
  type UserRecord,
} from './records.ts';
import { eventWriter } from './write-events.ts';
import { companyWriter, userWriter } from './write-profiles.ts';

/** The caller's Idempotency-Key and the digest of the request that it stands for. */
export interface Idempotency {
  readonly key: string;
  readonly digest: Buffer;
}

/**
 * The way in of single records. Each call resolves when its record is committed, and throws `InputError` (the database
 * refuses the record; the key stands for another request) or `TransientError`.
 */
export interface Ingest {
  identifyUser(record: UserRecord, idempotency: Idempotency | null): Promise<void>;
  identifyCompany(record: CompanyRecord, idempotency: Idempotency | null): Promise<void>;
  track(record: EventRecord, idempotency: Idempotency | null): Promise<void>;
  /** Resolves when all that was submitted has ended. */
  drained(): Promise<void>;
}

/**
 * Profiles go through lanes by key: one statement at a time in each, so that the records of one key take effect in the
 * order in which they came, while two statements keep Postgres busy. Events have no order to keep.
 */
const userLanes = 2;
const eventStatements = 2;

export function openIngest(context: IngestContext): Ingest {
  const userRows = userWriter(context);
  const companyRows = companyWriter(context);
  const eventRows = eventWriter(context);
  const users = Array.from({ length: userLanes }, () => openWindow(context, 'users', 1, userRows));
  const companies = openWindow(context, 'companies', 1, companyRows);
  const events = openWindow(context, 'events', eventStatements, eventRows);
  return {
    identifyUser(record, idempotency) {
      if (idempotency !== null) return once(context, record, idempotency, userRows);
      const lane = users[laneOf(record.userId)] ?? users[0];
      return (lane as CommitWindow<UserRecord>).submit(record);
    },
    identifyCompany(record, idempotency) {
      if (idempotency !== null) return once(context, record, idempotency, companyRows);
      return companies.submit(record);
    },
    track(record, idempotency) {
      if (idempotency !== null) return once(context, record, idempotency, eventRows);
      return events.submit(record);
    },
    async drained() {
      await Promise.all([...users, companies, events].map((window) => window.drained()));
    },
  };
}

function openWindow<T extends { readonly bytes: number }, Rows>(
  { pool, metrics }: IngestContext,
  entity: IngestEntity,
  inFlight: number,
  writer: RecordWriter<T, Rows>,
): CommitWindow<T> {
  return new CommitWindow<T>({
    inFlight,
    write: async (records) => writer.write(pool, await writer.prepare(records)),
    onCommitted: (records, seconds) => metrics.windowCommitted(entity, records, seconds),
    onWaiting: (difference) => metrics.windowWaiting(entity, difference),
  });
}

/** A request that must not be done twice has a transaction of its own: the key is claimed with what it stands for. */
async function once<T extends { readonly environmentId: number }, Rows>(
  { pool }: IngestContext,
  record: T,
  { key, digest }: Idempotency,
  writer: RecordWriter<T, Rows>,
): Promise<void> {
  try {
    const rows = await writer.prepare([record]);
    await inTransaction(pool, async ({ client, db }) => {
      const { outcome } = await claimIdempotencyKey(db, record.environmentId, key, digest, null);
      if (outcome === 'conflict') throw idempotencyConflict();
      if (outcome === 'claimed') await writer.write(client, rows);
    });
  } catch (error) {
    throw isDataError(error) ? refused(error) : error;
  }
}

function laneOf(key: string): number {
  let hash = 0;
  for (let at = 0; at < key.length; at++) hash = (hash * 31 + key.charCodeAt(at)) | 0;
  return (hash >>> 0) % userLanes;
}
