import type pg from 'pg';
import { InputError, inputError } from '../base/errors.ts';
import type { Instant } from '../base/instant.ts';
import type { KnownProperties } from '../lookups/known-properties.ts';
import type { Guard, RefusalSeam } from '../postgres/guard.ts';
import type { JudgeContext, JudgeSeam } from './judge-seam.ts';

/** JSON object of `parseJsonText`. */
export type Properties = Readonly<Record<string, unknown>>;

interface Record_ {
  readonly environmentId: number;
  readonly marked: boolean;
  readonly dropped?: number;
  readonly bytes: number;
  /** Set for a record from another record, which may lack required properties. */
  readonly isBeside?: true;
}

/** Record that is merged into the stored user. A null property is removed. */
export interface UserRecord extends Record_ {
  readonly userId: string;
  /** `null` keeps the company, '' removes it. */
  readonly companyId: string | null;
  readonly properties: Properties;
  readonly company: Properties;
}

export interface CompanyRecord extends Record_ {
  readonly companyId: string;
  readonly properties: Properties;
}

export interface EventRecord extends Record_ {
  /** Id from the caller, so that the event is added once. */
  readonly eventId: string | null;
  readonly eventName: string;
  readonly isPageView?: true;
  /** Set if the event creates a missing user. */
  readonly impliesUser?: true;
  readonly userId: string;
  /** `null` for the user's company, '' for none. */
  readonly companyId: string | null;
  /** `null` for now. */
  readonly insertedAt: Instant | null;
  readonly metadata: Properties;
}

/** Valid item of a batch. `index` counts from 0. */
export type BatchItem = { readonly index: number } & ItemRecord;

export type ItemRecord =
  | { readonly entity: 'users'; readonly record: UserRecord }
  | { readonly entity: 'companies'; readonly record: CompanyRecord }
  | { readonly entity: 'events'; readonly record: EventRecord };

export type AnyRecord = ItemRecord['record'];

export type Connection = pg.Pool | pg.PoolClient;

/**
 * Writer of records of one entity, all or none. `prepare` adds names and partitions outside the
 * transaction, which may remain if it fails.
 */
export interface RecordWriter<T, Rows> {
  prepare(records: readonly T[]): Promise<Rows>;
  write(connection: Connection, rows: Rows, guard: Guard): Promise<void>;
}

export interface IngestContext extends JudgeContext {
  readonly pool: pg.Pool;
  readonly knownProperties: KnownProperties;
  readonly metrics: IngestMetrics;
  readonly refusals: readonly RefusalSeam[];
  readonly records: JudgeSeam | null;
}

export type IngestEntity = 'users' | 'companies' | 'events';

interface IngestMetrics {
  windowCommitted(entity: IngestEntity | 'batches', records: number, seconds: number): void;
  windowWaiting(entity: IngestEntity | 'batches', difference: number): void;
}

export function refused(cause: unknown): InputError {
  if (cause instanceof InputError) return cause;
  const error = inputError('invalid_metadata_value', 'The database cannot store this record');
  error.cause = cause;
  return error;
}

/** Thrown before any write, if records are refused or cannot be judged now. Retry without them. */
export class RecordsRefused extends Error {
  override readonly name = 'RecordsRefused';
  readonly causes: ReadonlyMap<unknown, unknown>;

  constructor(causes: ReadonlyMap<unknown, unknown>, cause: unknown) {
    super('some records are refused', { cause });
    this.causes = causes;
  }
}
