import type pg from 'pg';
import type { Config } from '../base/config.ts';
import { InputError, inputError } from '../base/errors.ts';
import type { Instant } from '../base/instant.ts';
import type { PropertyEntity } from '../domain/entity.ts';
import type { Reason } from '../domain/reject.ts';
import type { KnownProperties } from '../lookups/known-properties.ts';
import type { Database } from '../postgres/database.ts';
import type { Guard, RefusalSeam } from '../postgres/uses.ts';

/** JSON object as returned by `parseJsonText`. */
export type Properties = Readonly<Record<string, unknown>>;

interface Record_ {
  readonly environmentId: number;
  readonly marked: boolean;
  readonly dropped?: number;
  readonly bytes: number;
  /**
   * Set if the record is derived from another record, such as the company in a user's record. A
   * derived record may lack required properties.
   */
  readonly isDerived?: true;
}

/** A record that is merged into the stored user. Properties whose value is null are removed. */
export interface UserRecord extends Record_ {
  readonly userId: string;
  /** Company of the user. `null` to keep the stored company, '' to remove it. */
  readonly companyId: string | null;
  readonly properties: Properties;
  readonly company: Properties;
}

export interface CompanyRecord extends Record_ {
  readonly companyId: string;
  readonly properties: Properties;
}

export interface EventRecord extends Record_ {
  /** Id given by the caller, under which the event is stored only once. `null` if none is given. */
  readonly eventId: string | null;
  readonly eventName: string;
  readonly isPageView?: true;
  /** True to create the user if there is no such user. */
  readonly impliesUser?: true;
  readonly userId: string;
  /** Company of the event. `null` for the company of its user, '' for no company. */
  readonly companyId: string | null;
  /** Time of the event. `null` for the current time. */
  readonly insertedAt: Instant | null;
  readonly metadata: Properties;
}

/** `index` counts from 0. */
export type BatchItem = { readonly index: number } & ItemRecord;

export type ItemRecord =
  | { readonly entity: 'users'; readonly record: UserRecord }
  | { readonly entity: 'companies'; readonly record: CompanyRecord }
  | { readonly entity: 'events'; readonly record: EventRecord };

export type AnyRecord = ItemRecord['record'];

export type Connection = pg.Pool | pg.PoolClient;

/**
 * Writes all records or none. `prepare` runs before the transaction: the property names and
 * partitions that it adds remain even if the transaction fails.
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

export const MAX_WINDOW_TRIES = 6;

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

/**
 * Thrown if some records are refused, or cannot be checked at the moment. No record is written, so
 * the caller may retry without the refused records.
 */
export class RecordsRefused extends Error {
  override readonly name = 'RecordsRefused';
  readonly causes: ReadonlyMap<unknown, unknown>;

  constructor(causes: ReadonlyMap<unknown, unknown>, cause: unknown) {
    super('some records are refused', { cause });
    this.causes = causes;
  }
}

/** A judge decides for each record whether it may be stored, and with which properties. */
export interface JudgeSeam {
  /**
   * Name of the use in `src/postgres/uses.ts`. If an environment has this use, all its single
   * records and batches are judged.
   */
  readonly use: string;
  /** Returns `null` if all records are accepted. @throws TransientError */
  current(context: JudgeContext, environmentId: number): Promise<JudgeStage | null>;
}

export interface JudgeContext {
  readonly db: Database;
  readonly config: Config;
}

export interface JudgeStage {
  /** Returns the properties to store and the reasons for refusing the record, if any. */
  judgeProperties(
    entity: PropertyEntity,
    properties: Readonly<Record<string, unknown>>,
    about: { readonly isDerived?: boolean; readonly eventName?: string },
  ): { readonly kept: Readonly<Record<string, unknown>>; readonly reasons: readonly Reason[] };
}
