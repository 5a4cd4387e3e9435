// The domain: nouns and their rules, without I/O. Read this file first for loads, `task.ts` for
// background work, and `src/base/errors.ts` for failures.
import { type Entity, type LoadEntity, type RecordKind, recordKinds } from './entity.ts';
import { type GuardLimit, type Limits, noLimits, type VolumeGuard } from './guards.ts';
import type { Preset, SourceFormat, SourceOptions } from './source.ts';

export const loadTypes = ['import', 'bulk_identify_users', 'bulk_identify_companies', 'undo'] as const;
export type LoadType = (typeof loadTypes)[number];

/**
 * queued → processing → completed | failed | cancelled. `held`: a guard waits for a person's
 * decision.
 */
export const loadStatuses = ['queued', 'processing', 'held', 'completed', 'failed', 'cancelled'] as const;
/**
 * sluice has the same API as another product. Filters accept these statuses of that product, but no
 * job of sluice ever has them.
 */
export const foreignStatuses = ['validating', 'pending_refresh'] as const;
export type LoadStatus = (typeof loadStatuses)[number];

export const endedStatuses = ['completed', 'failed', 'cancelled'] as const satisfies readonly LoadStatus[];

/**
 * Error code of a load that stopped early, because all of its first records were refused. A retry
 * reads the remaining records.
 */
export const FIRST_RECORDS_REFUSED = 'first_records_refused';

/** Error code of a load whose records were all refused. Such a load cannot be retried. */
export const ALL_RECORDS_REFUSED = 'all_records_refused';

/**
 * A pass is one run of a load's chunks over the file. `load` writes, `dry_run` counts, `plan`
 * stores the changes, and `validate` only maps the records. `guard` stores the changes, too. If no
 * limit is exceeded, `load` follows `guard` or `validate`. A load with the pass `apply` waits until
 * a worker writes its plan.
 */
const loadPasses = ['load', 'dry_run', 'plan', 'guard', 'validate', 'apply'] as const;
export type LoadPass = (typeof loadPasses)[number];

export function keepsPlan(pass: LoadPass): boolean {
  return pass === 'plan' || pass === 'guard';
}

/** Error code if the file expired while the load was held. */
export const HOLD_EXPIRED = 'hold_expired';

/**
 * Error code of a held load whose file was removed by a deletion. Also the error code of a load
 * whose file sluice writes itself, if the data for that file no longer exists.
 */
export const JOB_EXPIRED = 'job_expired';

/** Error code if the load would change or remove more than its limits allow. */
export const GUARD_EXCEEDED = 'guard_exceeded';

/** Formats of stored files. JSON arrays and Parquet files are converted to NDJSON on receipt. */
export type StoredFormat = 'csv' | 'ndjson';

export interface LoadOptions extends Limits<GuardLimit> {
  readonly entity: LoadEntity;
  readonly map: Readonly<Record<string, string>>;
  /**
   * Product that exported the file. Its records are converted on receipt. A preset cannot be
   * combined with a map.
   */
  readonly preset: Preset | null;
  /** Earlier load that provides the options missing from this request, or `null`. */
  readonly optionsOf: string | null;
  readonly dryRun: boolean;
  /** True for a dry run that can be applied afterwards. */
  readonly plan: boolean;
  /** Holds the load before it writes if the file is unusual. `null` if there is no guard. */
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

/** Action to take if profiles have changed since the plan was made. */
export const onDriftChoices = ['refuse', 'proceed'] as const;
export type OnDrift = (typeof onDriftChoices)[number];

export interface PlanSummary {
  readonly counts: Tally;
  readonly countsByKind: TallyByKind | null;
  /**
   * Number of profiles by entity. Includes profiles that are created only because a record refers
   * to them.
   */
  readonly profiles: Readonly<
    Record<Entity, { readonly new: number; readonly changed: number; readonly removed: number }>
  >;
  readonly values: ValueChanges;
  /** The properties with the most changes, at most MAX_PLAN_PROPERTIES. */
  readonly properties: readonly PlannedProperty[];
  readonly morePropertyNames: number;
  readonly events: PlannedEvents;
}

/**
 * Number of new events by name (highest first) and by date. At most MAX_PLAN_PROPERTIES names and
 * dates.
 */
export interface PlannedEvents {
  readonly names: readonly { readonly name: string; readonly count: number }[];
  readonly moreNames: number;
  /** UTC dates in chronological order. */
  readonly days: readonly { readonly day: string; readonly count: number }[];
  readonly earlierDays: number;
}

/** Number of changed values, by kind of change. `retype`: the JSON type changes. */
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

/** The unit of work and retry: a byte range that ends at the end of a record. */
export interface ChunkRange {
  readonly byteStart: number;
  readonly byteEnd: number;
  /** Number of the first record, counted from 1. */
  readonly firstRow: number;
  /** Line of the first record, counted from 1. */
  readonly firstLine: number;
  readonly rowCount: number;
  /**
   * True if the chunk is a single record larger than MAX_RECORD_BYTES. Such a record is never read
   * into memory as a whole.
   */
  readonly oversized: boolean;
}

/**
 * Each record has exactly one of these outcomes. The column `rows_<outcome>` contains the number of
 * records with that outcome. `rows_removed` is an exception: it counts removed profiles.
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
 * Kinds of records that are counted. `unknown`: the record was refused before its kind was known.
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
