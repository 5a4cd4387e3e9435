// Types of unions, ids and JSON that the generated `schema.ts` lacks. With these types, `camel` and
// `snake` convert between rows and domain records, so stores need no mappers.
import {
  type AliasedRawBuilder,
  type ColumnType,
  type InsertType,
  type RawBuilder,
  type SelectType,
  sql,
  type UpdateType,
} from 'kysely';
import type { Holder, Scope } from '../domain/caller.ts';
import type { DataType } from '../domain/data-type.ts';
import type { Maker } from '../domain/definitions.ts';
import type { DeletionOutcome, DeletionStatus } from '../domain/deletion.ts';
import type { Entity, LoadEntity, NameKind } from '../domain/entity.ts';
import type {
  ExportFile,
  ExportFormat,
  ExportLayout,
  ExportRequest,
  ExportStatus,
  ExportWarning,
} from '../domain/export.ts';
import type { Surprise, VolumeGuard } from '../domain/guards.ts';
import type { CountedKind, LoadPass, LoadStatus, LoadType, OnDrift, PlanSummary } from '../domain/load.ts';
import type { RejectCode } from '../domain/reject.ts';
import type { Preset, ReadAs, SourceOptions } from '../domain/source.ts';
import type { Origin, TaskKindName } from '../domain/task.ts';
import type { FileRef } from '../files/file-store.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import type { DB, Json } from './schema.ts';

/**
 * Types of the values that are read from these columns. Constraints check the values that are
 * written. A nullable JSON column must include `null`.
 */
export interface Known {
  api_keys: { scopes: readonly Scope[] };
  console_sessions: { holder: Holder };
  deletion_ids: { outcome: DeletionOutcome };
  deletions: {
    entity: Entity;
    status: DeletionStatus;
    origin: Origin['kind'];
    options: Readonly<Record<string, boolean>>;
  };
  export_files: { dataset: ExportFile['dataset']; file_ref: FileRef };
  environments: { export_layout: ExportLayout };
  exports: {
    format: ExportFormat;
    origin: Origin['kind'];
    request: ExportRequest;
    status: ExportStatus;
    warnings: readonly ExportWarning[];
  };
  load_guards: {
    decided_by: Origin | null;
    guard: VolumeGuard | null;
    held_for: readonly Surprise[] | null;
  };
  load_plans: { on_drift: OnDrift; plan: PlanSummary | null };
  load_rejects: { error_code: RejectCode; kind: CountedKind };
  loads: {
    column_map: Readonly<Record<string, string>>;
    entity: LoadEntity;
    file_ref: FileRef;
    header: CsvHeader | null;
    origin: Origin['kind'];
    pass: LoadPass;
    preset: Preset;
    read_as: ReadAs | null;
    source_options: SourceOptions;
    status: LoadStatus;
    type: LoadType;
  };
  properties: { data_type: DataType; entity: NameKind };
  received_files: { file_ref: FileRef };
  segments: { definition: object; made_by: Maker };
  tasks: { kind: TaskKindName };
  uploads: { file_ref: FileRef | null };
}

type Retyped<Column, T> = ColumnType<OrNull<SelectType<Column>, T>, InsertType<Column>, UpdateType<Column>>;

/**
 * Adds `null` for a nullable column. Leaves JSON unchanged, because its generated type always
 * includes null.
 */
type OrNull<Selected, T> = Json extends Selected ? T : T | Extract<Selected, null>;

export type Tables = {
  [T in keyof DB]: T extends keyof Known
    ? { [C in keyof DB[T]]: C extends keyof Known[T] ? Retyped<DB[T][C], Known[T][C]> : DB[T][C] }
    : DB[T];
};

export type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<CamelCase<Rest>>}`
  : Name;

type Unqualified<Column extends string> = Column extends `${string}.${infer Name}` ? Name : Column;

type InCamelCase<Column extends string> = Column extends string
  ? `${Column} as ${CamelCase<Unqualified<Column>>}`
  : never;

export function camel<const Column extends string>(...columns: Column[]): InCamelCase<Column>[] {
  return columns.map((column) => {
    const name = column.slice(column.indexOf('.') + 1);
    return `${column} as ${name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())}`;
  }) as InCamelCase<Column>[];
}

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

type InSnakeCase<T> = { [K in keyof T & string as SnakeCase<K>]: T[K] };

export function snake<T extends object>(record: T): InSnakeCase<T> {
  const entries = Object.entries(record).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  return Object.fromEntries(entries) as InSnakeCase<T>;
}

export function hex<Name extends string>(column: string, name: Name): AliasedRawBuilder<string, Name> {
  return sql<string>`encode(${sql.ref(column)}, 'hex')`.as(name);
}

export function toFailure(
  code: string | null,
  message: string | null,
): { readonly code: string; readonly message: string } | null {
  return code === null ? null : { code, message: message ?? code };
}

export const daysAgo = (days: number): RawBuilder<Date> => sql<Date>`now() - ${days} * interval '1 day'`;

export const inMs = (ms: number): RawBuilder<Date> => sql<Date>`now() + ${ms} * interval '1 millisecond'`;

/** Formats a time as an `Instant`, with microseconds, which a Date lacks. */
export function instantText<T = string>(time: RawBuilder<unknown>): RawBuilder<T> {
  return sql<T>`to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}

/** Formats a time as in the API, with milliseconds. */
export function timeText(column: string): RawBuilder<string> {
  return sql.raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`);
}
