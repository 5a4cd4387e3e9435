/*
 * Decides what undoing does to a profile whose changes are not simply the last: property by property, go back from now while the last change
 * is by the undone loads. A load and an earlier undo of it cancel each other out, and so do an undo and the undo of that.
 */

import type { Entity } from '../../domain/entity.ts';

/** A number of a load; `null`: a single record, a deletion or an operator. */
type Author = number | null;

/** Properties by their names, as JSON texts, which keep every digit. */
type Texts = Readonly<Record<string, string>>;

/** A change of the profile, and what was before it. `properties` is null if they were erased. */
interface LoggedChange {
  readonly by: Author;
  /** The load that had written the profile last. */
  readonly made: Author;
  readonly removed: boolean;
  readonly properties: Texts | null;
  readonly company: string | null;
  readonly firstSeen: string | null;
}

/** A profile as the store reads it: as it is, and all that the log knows of it, in order. */
export interface LoggedProfile {
  readonly entity: Entity;
  readonly id: string;
  readonly now: {
    readonly position: number;
    readonly made: Author;
    readonly properties: Texts;
    readonly company: string | null;
  } | null;
  readonly log: readonly LoggedChange[] | null;
  /** Users whom the undone loads did not touch belong to this company. */
  readonly others: boolean;
}

export interface UndoneLoads {
  readonly loads: ReadonlySet<number>;
  /** The only properties to put back; `null`: all, and companies and profiles too. */
  readonly properties: ReadonlySet<string> | null;
  /** All undos of the environment, each with what it undid. */
  readonly undos: ReadonlyMap<number, ReadonlySet<number>>;
  /** Loads that were undone before. What is left of them, because it was not the newest then, goes with what covers it. */
  readonly inactive: ReadonlySet<number>;
}

/** The outcome of an undo for one profile. */
export interface Reversal {
  readonly does: 'nothing' | 'restore' | 'remove' | 'bring back';
  readonly properties: ReadonlyMap<string, string>;
  readonly company: string | null;
  readonly firstSeen: string | null;
  /** Properties that the loads set and somebody else has changed since; `company_id` for the company. */
  readonly kept: readonly string[];
}

/** The profile at one time; `properties` is null while there is none. `by` made it so. */
interface Version {
  readonly by: Author;
  readonly properties: ReadonlyMap<string, string> | null;
  readonly company: string | null;
}

export function walkBack(profile: LoggedProfile, undone: UndoneLoads): Reversal {
  const uncounted = { ...undone, loads: new Set([...undone.loads, ...undone.inactive]) };
  const versions = versionsOf(profile, uncounted.loads);
  const walk = (readValue: (version: Version) => string | null) => walkTrack(versions, readValue, undone);
  const names = new Set(versions.flatMap(({ properties }) => [...(properties?.keys() ?? [])]));
  const whole = undone.properties === null;
  const walks = new Map<string, Walk>();
  for (const name of names) {
    if (undone.properties?.has(name) ?? true)
      walks.set(
        name,
        walk(({ properties }) => properties?.get(name) ?? null),
      );
  }
  const company = whole ? walk((version) => version.company) : unmoved(profile.now?.company ?? null);
  const existence = whole
    ? walkTrack(versions, ({ properties }) => properties && '', uncounted)
    : unmoved(profile.now && '');
  const properties = new Map(profile.now === null ? [] : Object.entries(profile.now.properties));
  for (const [name, { value }] of walks) {
    if (value === null) properties.delete(name);
    else properties.set(name, value);
  }
  const isTouched = profile.others || [...walks.values(), company].some(({ at }) => at > existence.madeAt);
  const hasValues = properties.size > 0 || company.value !== null;
  // Without its maker it is there for others, unless it was removed and that still counts.
  const mayExist = profile.now !== null || (whole && existence.at === 0);
  const exists = existence.value !== null || (mayExist && (isTouched || hasValues));
  const kept = [...walks].flatMap(([name, { isKept }]) => (isKept ? [name] : []));
  if (company.isKept) kept.push('company_id');
  const to = { properties, company: company.value, firstSeen: profile.log?.at(-1)?.firstSeen ?? null };
  const does = stepOf(profile.now, exists, to);
  return { does, ...to, kept: exists && profile.now !== null ? kept.sort() : [] };
}

function stepOf(
  now: LoggedProfile['now'],
  exists: boolean,
  to: Pick<Reversal, 'properties' | 'company'>,
): Reversal['does'] {
  if (now === null) return exists ? 'bring back' : 'nothing';
  if (!exists) return 'remove';
  const before = Object.entries(now.properties);
  const isSame =
    now.company === to.company &&
    before.length === to.properties.size &&
    before.every(([name, value]) => to.properties.get(name) === value);
  return isSame ? 'nothing' : 'restore';
}

/**
 * All states of the profile that are known, the current one last. What was before it was erased does not count. All that `loads` wrote is
 * in the log: what one of them wrote before the first change, it made.
 */
function versionsOf({ now, log }: LoggedProfile, loads: ReadonlySet<number>): readonly Version[] {
  const versions: Version[] = [];
  const absent = (by: Author): Version => ({ by, properties: null, company: null });
  let by: Author = null;
  const add = ({ made, properties, company }: Omit<LoggedChange, 'by' | 'removed' | 'firstSeen'>): void => {
    const state = { properties: new Map(Object.entries(properties ?? {})), company };
    if (versions.length === 0 && made !== null && loads.has(made)) versions.push(absent(null));
    const isMade = versions.at(-1)?.properties === null;
    versions.push({ by: isMade ? made : by, ...state });
  };
  for (const change of log ?? []) {
    if (change.properties === null) versions.splice(0, versions.length, absent(null));
    else {
      add(change);
      if (change.removed) versions.push(absent(change.by));
    }
    by = change.by;
  }
  if (now !== null) add(now);
  else if (versions.at(-1)?.properties !== null) versions.push(absent(null));
  return versions;
}

/** A change of one value that still counts. */
interface Entry {
  readonly by: Author;
  readonly value: string | null;
  /** The version that it came with. */
  readonly at: number;
}

/** The end of the walk along the changes of one value. */
interface Walk {
  readonly value: string | null;
  /** The version that brought the value. */
  readonly at: number;
  /** The version with which the undone loads began to change it; infinite if they did not. */
  readonly madeAt: number;
  /** Somebody else changed it after the undone loads. */
  readonly isKept: boolean;
}

const unmoved = (value: string | null): Walk => ({
  value,
  at: 0,
  madeAt: Number.POSITIVE_INFINITY,
  isKept: false,
});

function walkTrack(
  versions: readonly Version[],
  readValue: (version: Version) => string | null,
  undone: UndoneLoads,
): Walk {
  const entries = effectiveChanges(versions, readValue, undone);
  const isUndone = ({ by }: Entry): boolean => by !== null && undone.loads.has(by);
  const isUncounted = (entry: Entry): boolean => isUndone(entry) || undone.inactive.has(entry.by ?? 0);
  const top = entries.length - 1;
  // Below what goes back, what others had undone goes too: then it was kept because this was newer.
  const goes = top > 0 && isUndone(entries[top] as Entry);
  const last = goes ? entries.findLastIndex((entry, index) => index === 0 || !isUncounted(entry)) : top;
  const { value, at } = entries[last] ?? { value: null, at: 0 };
  return {
    value,
    at,
    madeAt: entries[last + 1]?.at ?? Number.POSITIVE_INFINITY,
    isKept: !goes && entries.some((entry, index) => index > 0 && isUndone(entry)),
  };
}

/** The changes of a value, without those that an undo has taken back. The first entry is what was before all. */
function effectiveChanges(
  versions: readonly Version[],
  readValue: (version: Version) => string | null,
  { loads, undos }: UndoneLoads,
): readonly Entry[] {
  let entries: readonly Entry[] = [];
  const takenBack = new Map<number, readonly Entry[]>();
  let before: string | null | undefined;
  for (const [at, version] of versions.entries()) {
    const { by } = version;
    const value = readValue(version);
    if (value === before) continue;
    before = value;
    const undid = by === null || loads.has(by) ? undefined : undos.get(by);
    const kept =
      1 + entries.findLastIndex((entry, index) => index === 0 || undid?.has(entry.by ?? 0) !== true);
    const again = [...(undid ?? [])].flatMap((load) => takenBack.get(load) ?? []);
    const reversed = [...entries.slice(0, kept), ...again];
    if (by !== null && undid !== undefined && reversed.at(-1)?.value === value) {
      takenBack.set(by, entries.slice(kept));
      entries = reversed;
    } else {
      entries = [...entries, { by, value, at }];
    }
  }
  return entries;
}
