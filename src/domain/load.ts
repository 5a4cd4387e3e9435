// This folder contains sluice's nouns and their rules, without I/O. Start here for loads, in
// `task.ts` for background work, and in `src/base/errors.ts` for failures.
import { type Entity, type LoadEntity, type RecordKind, recordKinds } from './entity.ts';
import { type GuardLimit, type Limits, noLimits, type VolumeGuard } from './guards.ts';
import type { Preset, SourceFormat, SourceOptions } from './source.ts';

export const loadTypes = ['import', 'bulk_identify_users', 'bulk_identify_companies', 'undo'] as const;
export type LoadType = (typeof loadTypes)[number];

/** queued → processing → completed | failed | cancelled. `held`: waits for a person's decision. */
export const loadStatuses = ['queued', 'processing', 'held', 'completed', 'failed', 'cancelled'] as const;
/** Statuses of the product whose API sluice shares. Filters accept them, but no job has them. */
export const foreignStatuses = ['validating', 'pending_refresh'] as const;
export type LoadStatus = (typeof loadStatuses)[number];

export const endedStatuses = ['completed', 'failed', 'cancelled'] as const satisfies readonly LoadStatus[];

/**
 * A load stopped early because all of its first records were refused. A retry reads the remaining
 * records.
 */
export const FIRST_RECORDS_REFUSED = 'first_records_refused';

/** All records were refused. The load cannot be retried. */
export const ALL_RECORDS_REFUSED = 'all_records_refused';

/**
 * A run of a load's chunks over the file. `load` writes, `dry_run` counts, `plan` and `guard` store
 * the changes, and `validate` only maps the records. If the load is within its limits, `load`
 * follows `guard` or `validate`. `apply` is a plan that waits for a worker to write it.
 */
const loadPasses = ['load', 'dry_run', 'plan', 'guard', 'validate', 'apply'] as const;
export type LoadPass = (typeof loadPasses)[number];

export function keepsPlan(pass: LoadPass): boolean {
  return pass === 'plan' || pass === 'guard';
}

/** The file expired while the load was held. */
export const HOLD_EXPIRED = 'hold_expired';

/**
 * A deletion removed the file of a held load, or the data for a file that sluice writes itself no
 * longer exists.
 */
export const JOB_EXPIRED = 'job_expired';

/** The load would change or remove more than its limits allow. */
export const GUARD_EXCEEDED = 'guard_exceeded';

/**
 * Formats of stored files. JSON arrays and Parquet are converted to NDJSON when they are received.
 */
export type StoredFormat = 'csv' | 'ndjson';

export interface LoadOptions extends Limits<GuardLimit> {
  readonly entity: LoadEntity;
  readonly map: Readonly<Record<string, string>>;
  /**
   * Product that exported the file. The file is converted when it is received. A load with a preset
   * cannot have a map.
   */
  readonly preset: Preset | null;
  /** Earlier load with the options that this request lacks, or `null`. */
  readonly optionsOf: string | null;
  readonly dryRun: boolean;
  /** True for a dry run that can be applied. */
  readonly plan: boolean;
  /**
   * Guard that holds the load before it writes if the file is unusual. `null` if the load has no
   * guard.
   */
  readonly guard: VolumeGuard | null;
  readonly ifDuplicate: 'load' | 'skip' | 'reject';
  readonly source: SourceOptions;
}

export interface FileOptions extends Omit<LoadOptions, 'dryRun' | 'plan'> {
  readonly format: SourceFormat | null;
}

export const defaultLoadOptions: LoadOptions = {
  entity: 'auto',
  map: {},
  preset: null,
  optionsOf: null,
  dryRun: false,
  plan: false,
  ...noLimits,
  guard: null,
  ifDuplicate: 'load',
  source: {},
};

export interface LoadPlan {
  readonly summary: PlanSummary;
  readonly plannedAt: Date;
  readonly appliedAt: Date | null;
  readonly onDrift: OnDrift | null;
}

/** Behaviour of a plan if profiles have changed since it was made. */
export const onDriftChoices = ['refuse', 'proceed'] as const;
export type OnDrift = (typeof onDriftChoices)[number];

export interface PlanSummary {
  readonly counts: Tally;
  readonly countsByKind: TallyByKind | null;
  /**
   * Number of profiles by entity. Includes profiles created only because a record refers to them.
   */
  readonly profiles: Readonly<
    Record<Entity, { readonly new: number; readonly changed: number; readonly removed: number }>
  >;
  readonly values: ValueChanges;
  /** Properties with the most changes, at most MAX_PLAN_PROPERTIES. */
  readonly properties: readonly PlannedProperty[];
  readonly morePropertyNames: number;
  readonly events: PlannedEvents;
}

/**
 * Numbers of new events by name and by date. At most MAX_PLAN_PROPERTIES of each. The names with
 * the highest numbers are first.
 */
export interface PlannedEvents {
  readonly names: readonly { readonly name: string; readonly count: number }[];
  readonly moreNames: number;
  /** Dates in UTC, in chronological order. */
  readonly days: readonly { readonly day: string; readonly count: number }[];
  readonly earlierDays: number;
}

/** Numbers of changed values. `retype` counts the values whose JSON type changes. */
export interface ValueChanges {
  readonly appear: number;
  readonly change: number;
  readonly go: number;
  readonly retype: number;
}

export interface PlannedProperty extends ValueChanges {
  readonly entity: Entity;
  readonly name: string;
  readonly isNew: boolean;
}

/** A chunk of a file: the unit of work and retry. It ends at the end of a record. */
export interface ChunkRange {
  readonly byteStart: number;
  readonly byteEnd: number;
  /** From 1. */
  readonly firstRow: number;
  /** From 1. */
  readonly firstLine: number;
  readonly rowCount: number;
  /** True for a single record above MAX_RECORD_BYTES, which is never in memory as a whole. */
  readonly oversized: boolean;
}

/**
 * Each record has exactly one outcome, counted in `rows_<outcome>`. Only `rows_removed` counts
 * profiles instead of records.
 */
export const recordOutcomes = [
  'inserted',
  'updated',
  'unchanged',
  'removed',
  'superseded',
  'rejected',
] as const;

export type Outcomes = Readonly<Record<(typeof recordOutcomes)[number], number>>;
export type Tally = Readonly<Record<'read' | (typeof recordOutcomes)[number], number>>;

export function balances(tally: Tally): boolean {
  return tally.read === toTally(tally).read;
}

/**
 * Kinds by which records are counted. `unknown`: the record was refused before its kind was known.
 */
export const countedKinds = [...recordKinds, 'unknown'] as const satisfies readonly (
  | RecordKind
  | 'unknown'
)[];
export type CountedKind = (typeof countedKinds)[number];
export type TallyByKind = Readonly<Record<CountedKind, Tally>>;

export type OutcomesByKind = Readonly<Record<CountedKind, Outcomes>>;

const eachOutcome = (count: (outcome: keyof Outcomes) => number) =>
  Object.fromEntries(recordOutcomes.map((outcome) => [outcome, count(outcome)])) as Outcomes;

export const noOutcomes: Outcomes = eachOutcome(() => 0);

const byKind = <T>(make: (kind: CountedKind) => T) =>
  Object.fromEntries(countedKinds.map((kind) => [kind, make(kind)])) as Record<CountedKind, T>;

export const noOutcomesByKind: OutcomesByKind = byKind(() => noOutcomes);

export function addOutcomes(a: Outcomes, b: Partial<Outcomes>): Outcomes {
  return eachOutcome((outcome) => a[outcome] + (b[outcome] ?? 0));
}

export function toTally(of: Outcomes): Tally {
  const counts = eachOutcome((outcome) => of[outcome]);
  return { read: Object.values(counts).reduce((sum, count) => sum + count, 0), ...counts };
}

export function sumByKind(tallies: readonly (TallyByKind | null)[]): TallyByKind | null {
  const some = tallies.filter((tally) => tally !== null);
  if (some.length === 0) return null;
  return byKind((kind) =>
    toTally(some.reduce((total, tally) => addOutcomes(total, tally[kind]), noOutcomes)),
  );
}
