// The domain: nouns and their rules, without I/O. Start here for loads, at `task.ts` for background
// work, and at `src/base/errors.ts` for failures.
import { type Entity, type LoadEntity, type RecordKind, recordKinds } from './entity.ts';
import { type GuardLimit, type Limits, noLimits, type VolumeGuard } from './guards.ts';
import type { Preset, SourceFormat, SourceOptions } from './source.ts';

export const loadTypes = ['import', 'bulk_identify_users', 'bulk_identify_companies', 'undo'] as const;
export type LoadType = (typeof loadTypes)[number];

/** queued → processing → completed | failed | cancelled. `held`: a guard awaits a decision. */
export const loadStatuses = ['queued', 'processing', 'held', 'completed', 'failed', 'cancelled'] as const;
/** Statuses of the documented product. Filters accept them, but no job has one. */
export const foreignStatuses = ['validating', 'pending_refresh'] as const;
export type LoadStatus = (typeof loadStatuses)[number];

export const endedStatuses = ['completed', 'failed', 'cancelled'] as const satisfies readonly LoadStatus[];

/** Code if all first records were refused. A retry reads the others. */
export const FIRST_RECORDS_REFUSED = 'first_records_refused';

/** Code if all records were refused, so that a retry is impossible. */
export const ALL_RECORDS_REFUSED = 'all_records_refused';

/**
 * Work of a load's chunks: `load` writes, `dry_run` counts, `plan` keeps changes, `guard` plans,
 * `validate` only maps, `apply` awaits a plan. After `guard` and `validate` a load continues as
 * `load`, unless a limit is exceeded.
 */
const loadPasses = ['load', 'dry_run', 'plan', 'guard', 'validate', 'apply'] as const;
export type LoadPass = (typeof loadPasses)[number];

export function keepsPlan(pass: LoadPass): boolean {
  return pass === 'plan' || pass === 'guard';
}

/** Code if the file expired while the load was held. */
export const HOLD_EXPIRED = 'hold_expired';

/** Code if a deletion took a held load's file, or an own file can no longer be written. */
export const JOB_EXPIRED = 'job_expired';

/** Code if more than allowed would change or be removed. */
export const GUARD_EXCEEDED = 'guard_exceeded';

/** Formats of stored files. JSON arrays and Parquet are rewritten as NDJSON on receipt. */
export type StoredFormat = 'csv' | 'ndjson';

export interface LoadOptions extends Limits<GuardLimit> {
  readonly entity: LoadEntity;
  readonly map: Readonly<Record<string, string>>;
  /** Product whose records are rewritten on receipt. Excludes a map. */
  readonly preset: Preset | null;
  /** Earlier load whose options replace missing ones. `null` for none. */
  readonly optionsOf: string | null;
  readonly dryRun: boolean;
  /** A dry run that can be applied. */
  readonly plan: boolean;
  /** Holds the load before it writes if its file differs. */
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

/** Action if profiles have changed since the plan. */
export const onDriftChoices = ['refuse', 'proceed'] as const;
export type OnDrift = (typeof onDriftChoices)[number];

export interface PlanSummary {
  readonly counts: Tally;
  readonly countsByKind: TallyByKind | null;
  /** Profiles by entity. Includes profiles that only other records name. */
  readonly profiles: Readonly<
    Record<Entity, { readonly new: number; readonly changed: number; readonly removed: number }>
  >;
  readonly values: ValueChanges;
  /** At most MAX_PLAN_PROPERTIES, most changes first. */
  readonly properties: readonly PlannedProperty[];
  readonly morePropertyNames: number;
  readonly events: PlannedEvents;
}

/** New events by name, most first, and by day. At most MAX_PLAN_PROPERTIES of each. */
export interface PlannedEvents {
  readonly names: readonly { readonly name: string; readonly count: number }[];
  readonly moreNames: number;
  /** Days in UTC, in order. */
  readonly days: readonly { readonly day: string; readonly count: number }[];
  readonly earlierDays: number;
}

/** Numbers of changed values. `retype` counts the changes of a JSON type. */
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

/** Byte range that ends at a record boundary: the unit of work and retry. */
export interface ChunkRange {
  readonly byteStart: number;
  readonly byteEnd: number;
  /** Number of the first record, from 1. */
  readonly firstRow: number;
  /** Line of the first record, from 1. */
  readonly firstLine: number;
  readonly rowCount: number;
  /** True for a single record above MAX_RECORD_BYTES, which is never read whole. */
  readonly oversized: boolean;
}

/** Outcomes, exactly one per record, as in the columns `rows_…`. `removed` counts a profile. */
export const outcomes = ['inserted', 'updated', 'unchanged', 'removed', 'superseded', 'rejected'] as const;

export type Outcomes = Readonly<Record<(typeof outcomes)[number], number>>;
/** Number of records read, and of each outcome. */
export type Tally = Readonly<Record<'read' | (typeof outcomes)[number], number>>;

export function balances(tally: Tally): boolean {
  return tally.read === toTally(tally).read;
}

/** Kinds with counts. `unknown`: refused before the kind was known. */
export const countedKinds = [...recordKinds, 'unknown'] as const satisfies readonly (
  | RecordKind
  | 'unknown'
)[];
export type CountedKind = (typeof countedKinds)[number];
export type TallyByKind = Readonly<Record<CountedKind, Tally>>;

export type OutcomesByKind = Readonly<Record<CountedKind, Outcomes>>;

const eachOutcome = (count: (outcome: keyof Outcomes) => number) =>
  Object.fromEntries(outcomes.map((outcome) => [outcome, count(outcome)])) as Outcomes;

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
