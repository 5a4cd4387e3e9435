/*
 * The domain: the nouns of the program and their rules. It does no I/O and imports only `src/base`. Begin with this file
 * for a load, `task.ts` for background work, `src/base/errors.ts` for what can go wrong, `src/base/limits.ts` for every
 * bound.
 */
import { type Entity, type LoadEntity, type RecordKind, recordKinds } from './entity.ts';
import { type GuardLimit, type Limits, noLimits, type VolumeGuard } from './guards.ts';
import type { Preset, SourceFormat, SourceOptions } from './source.ts';

export const loadTypes = ['import', 'bulk_identify_users', 'bulk_identify_companies', 'undo'] as const;
export type LoadType = (typeof loadTypes)[number];

/** queued → processing → completed | failed | cancelled. held: its guard waits for a person, who has it queued again or cancels it. */
export const loadStatuses = ['queued', 'processing', 'held', 'completed', 'failed', 'cancelled'] as const;
/** States of jobs in the documented product. Filters take them, and no job here is ever in one. */
export const foreignStatuses = ['validating', 'pending_refresh'] as const;
export type LoadStatus = (typeof loadStatuses)[number];

export const endedStatuses = ['completed', 'failed', 'cancelled'] as const satisfies readonly LoadStatus[];

/** The `failure.code` of a load that stopped because all of its first records were refused; a retry reads the others. */
export const FIRST_RECORDS_REFUSED = 'first_records_refused';

/** `failure.code` of a load whose every record was refused: there is nothing of it to be retried. */
export const ALL_RECORDS_REFUSED = 'all_records_refused';

/**
 * The work of a load's chunks. load: they write. dry_run: they look and count. plan: they keep what they find. guard: as plan, and validate:
 * they only map; then, unless a guard is hit, the load goes on as `load`. apply: the plan is to be loaded, and nothing has begun.
 */
const loadPasses = ['load', 'dry_run', 'plan', 'guard', 'validate', 'apply'] as const;
export type LoadPass = (typeof loadPasses)[number];

export function keepsPlan(pass: LoadPass): boolean {
  return pass === 'plan' || pass === 'guard';
}

/** `failure.code` of a load that was held until its file expired. */
export const HOLD_EXPIRED = 'hold_expired';

/** `failure.code` of a load whose own file can no longer be written, and of a held load whose file a deletion took. */
export const JOB_EXPIRED = 'job_expired';

/** `failure.code` of a load of which more would change, or go, than was allowed. */
export const GUARD_EXCEEDED = 'guard_exceeded';

/** The format of the stored file: JSON arrays and Parquet are rewritten as NDJSON while they are received. */
export type StoredFormat = 'csv' | 'ndjson';

export interface LoadOptions extends Limits<GuardLimit> {
  readonly entity: LoadEntity;
  readonly map: Readonly<Record<string, string>>;
  /** Whose records they are, if they are not ours: the file is rewritten while it is received. Not together with a map. */
  readonly preset: Preset | null;
  /** The earlier load that gives the options which the request leaves out; null: none. */
  readonly optionsOf: string | null;
  readonly dryRun: boolean;
  /** A dry run that keeps what it finds, and can be applied. */
  readonly plan: boolean;
  /** Holds the load, before anything is written, if its file is unlike this. */
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

/** The action if profiles have changed since the plan: refuse to write, or load all the same. */
export const onDriftChoices = ['refuse', 'proceed'] as const;
export type OnDrift = (typeof onDriftChoices)[number];

export interface PlanSummary {
  readonly counts: Tally;
  readonly countsByKind: TallyByKind | null;
  /** Profiles, also those that records of others name or describe. */
  readonly profiles: Readonly<
    Record<Entity, { readonly new: number; readonly changed: number; readonly removed: number }>
  >;
  readonly values: ValueChanges;
  /** Up to MAX_PLAN_PROPERTIES properties, those with the most changes first. */
  readonly properties: readonly PlannedProperty[];
  readonly morePropertyNames: number;
  readonly events: PlannedEvents;
}

/** New events by name, those of the most first, and by day, the latest MAX_PLAN_PROPERTIES of each. */
export interface PlannedEvents {
  readonly names: readonly { readonly name: string; readonly count: number }[];
  readonly moreNames: number;
  /** Days in UTC, in their order. */
  readonly days: readonly { readonly day: string; readonly count: number }[];
  readonly earlierDays: number;
}

/** Values of properties. `retype`: those among `change` whose type in JSON changes. */
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

/** A byte range of the stored file that ends on a record boundary: the unit of work, retry and parallelism. */
export interface ChunkRange {
  readonly byteStart: number;
  readonly byteEnd: number;
  /** Number of the first record among the data records of the file, from 1. */
  readonly firstRow: number;
  /** Line of the file on which the first record starts, from 1. */
  readonly firstLine: number;
  readonly rowCount: number;
  /** The range is a single record longer than MAX_RECORD_BYTES: it is reported, never read whole. */
  readonly oversized: boolean;
}

/**
 * The outcomes of a record, which has exactly one of them. The columns `rows_…` of the ledger follow. removed: it removed a profile.
 * superseded: a later record of the same file has the same key.
 */
export const outcomes = ['inserted', 'updated', 'unchanged', 'removed', 'superseded', 'rejected'] as const;

export type Outcomes = Readonly<Record<(typeof outcomes)[number], number>>;
/** The counts of a load: the records read, and what became of them. */
export type Tally = Readonly<Record<'read' | (typeof outcomes)[number], number>>;

export function balances(tally: Tally): boolean {
  return tally.read === toTally(tally).read;
}

/** Kinds that are counted apart. `unknown`: the record was refused before its kind was known. */
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
