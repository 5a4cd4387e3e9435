import type pg from 'pg';
import { InputError, inputError } from '../base/errors.ts';
import type { Instant } from '../base/instant.ts';
import type { KnownProperties } from '../lookups/known-properties.ts';
import type { Guard, RefusalSeam } from '../postgres/guard.ts';
import type { JudgeContext, JudgeSeam } from './judge-seam.ts';

/** A JSON object as `parseJsonText` gives it. */
export type Properties = Readonly<Record<string, unknown>>;

interface Record_ {
  readonly environmentId: number;
  readonly marked: boolean;
  /** Properties without a name, which were left out. */
  readonly dropped?: number;
  readonly bytes: number;
  /** Another record brought it along, so it may lack properties that are required. */
  readonly isBeside?: true;
}

/** A user to be laid over what is stored; a null property is removed. */
export interface UserRecord extends Record_ {
  readonly userId: string;
  /** null leaves the user's company as it is, '' removes it. */
  readonly companyId: string | null;
  readonly properties: Properties;
  readonly company: Properties;
}

export interface CompanyRecord extends Record_ {
  readonly companyId: string;
  readonly properties: Properties;
}

export interface EventRecord extends Record_ {
  /** The caller's, if there is one: the event is then added once. */
  readonly eventId: string | null;
  readonly eventName: string;
  readonly isPageView?: true;
  /** The user is created if there is none. */
  readonly impliesUser?: true;
  readonly userId: string;
  /** null: the company the user belongs to; '': none. */
  readonly companyId: string | null;
  /** null: now. */
  readonly insertedAt: Instant | null;
  readonly metadata: Properties;
}

/** An item of a batch that is as it should be; `index`: which of the items it is, from 0. */
export type BatchItem = { readonly index: number } & ItemRecord;

export type ItemRecord =
  | { readonly entity: 'users'; readonly record: UserRecord }
  | { readonly entity: 'companies'; readonly record: CompanyRecord }
  | { readonly entity: 'events'; readonly record: EventRecord };

export type AnyRecord = ItemRecord['record'];

export type Connection = pg.Pool | pg.PoolClient;

/**
 * Writes records of one entity, all or none, in two steps: what must be there before (names that are listed,
 * partitions) is made outside of the transaction that the rows are written in, and may stay if that fails.
 */
export interface RecordWriter<T, Rows> {
  prepare(records: readonly T[]): Promise<Rows>;
  write(connection: Connection, rows: Rows, guard: Guard): Promise<void>;
}

/** The context of writing single records. Passed, never imported. */
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

/** Explains a record to its caller that passed our checks and that PostgreSQL refuses. */
export function refused(cause: unknown): InputError {
  if (cause instanceof InputError) return cause;
  const error = inputError('invalid_metadata_value', 'The database cannot store this record');
  error.cause = cause;
  return error;
}

/** Nothing was written, because some records are refused or cannot be judged now; the others may be written without them. */
export class RecordsRefused extends Error {
  override readonly name = 'RecordsRefused';
  /** By record. */
  readonly causes: ReadonlyMap<unknown, unknown>;

  constructor(causes: ReadonlyMap<unknown, unknown>, cause: unknown) {
    super('some records are refused', { cause });
    this.causes = causes;
  }
}
