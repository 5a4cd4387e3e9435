import { isDeepStrictEqual } from 'node:util';
import { type InputError, inputError } from '../../base/errors.ts';
import type { Act } from '../../domain/act.ts';
import { type ActContext, act } from '../../postgres/acts.ts';
import type { Database } from '../../postgres/database.ts';
import {
  deleteSchedule,
  listSchedules,
  lockSchedule,
  type StoredSchedule,
  saveSchedule,
  setPaused,
} from './schedule-store.ts';
import { MAX_SCHEDULES, type Schedule, type ScheduleDefinition } from './schema.ts';

/** Narrows the type of a stored definition. The definition was checked before it was stored. */
const toSchedule = (stored: StoredSchedule): Schedule => ({
  ...stored,
  definition: stored.definition as ScheduleDefinition,
});

/**
 * Reads the schedules of one environment, or of all environments for `null`. Sorts by environment
 * and name.
 */
export async function readSchedules(db: Database, environmentId: number | null): Promise<Schedule[]> {
  return (await listSchedules(db, environmentId)).map(toSchedule);
}

/** @throws InputError `not_found` */
export async function requireSchedule(db: Database, environmentId: number, name: string): Promise<Schedule> {
  const [stored] = await listSchedules(db, environmentId, name);
  if (stored === undefined) throw noSchedule(name);
  return toSchedule(stored);
}

/**
 * Reads a schedule and locks it until the transaction ends. Returns `null` if the schedule is
 * missing.
 */
export async function holdSchedule(
  db: Database,
  environmentId: number,
  name: string,
): Promise<Schedule | null> {
  const stored = await lockSchedule(db, environmentId, name);
  return stored && toSchedule(stored);
}

export function noSchedule(name: string): InputError {
  return inputError(
    'not_found',
    'There is no such schedule',
    `schedule: ${name.slice(0, 100).toWellFormed()}`,
  );
}

/** Stores a schedule, replacing one with the same name. @throws InputError `invalid_field` */
export async function keepSchedule(
  context: ActContext,
  environmentId: number,
  definition: ScheduleDefinition,
): Promise<void> {
  await applySchedules(context, environmentId, [definition], { prune: false, dryRun: false });
}

/** @throws InputError `not_found` */
export async function removeSchedule(
  { db, acts }: ActContext,
  environmentId: number,
  name: string,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    if (!(await deleteSchedule(transaction, environmentId, name))) throw noSchedule(name);
    await acts.record(transaction, { action: 'schedule.deleted', environmentId, thing: name });
  });
}

/** Pauses or resumes a schedule. @throws InputError `not_found` */
export async function pauseSchedule(
  context: ActContext,
  environmentId: number,
  name: string,
  isPaused: boolean,
): Promise<void> {
  await requireSchedule(context.db, environmentId, name);
  await act(
    context,
    (db) => setPaused(db, environmentId, name, isPaused, new Date()),
    () => ({ action: isPaused ? 'schedule.paused' : 'schedule.resumed', environmentId, thing: name }),
  );
}

interface ApplyOptions {
  /** True if schedules that are not in the file are deleted. */
  readonly prune: boolean;
  readonly dryRun: boolean;
}

export interface ScheduleChanges {
  readonly added: readonly string[];
  readonly changed: readonly { readonly name: string; readonly fields: readonly string[] }[];
  readonly removed: readonly string[];
  readonly unchanged: number;
}

/**
 * Replaces an environment's schedules by these in one transaction. @throws InputError
 * `invalid_field`
 */
export function applySchedules(
  { db, acts }: ActContext,
  environmentId: number,
  definitions: readonly ScheduleDefinition[],
  { prune, dryRun }: ApplyOptions,
): Promise<ScheduleChanges> {
  return db.transaction().execute(async (transaction) => {
    const stored = await readSchedules(transaction, environmentId);
    const changes = compare(stored, definitions, prune);
    const count = stored.length + changes.added.length - changes.removed.length;
    if (count > MAX_SCHEDULES) {
      throw inputError('invalid_field', `An environment has at most ${MAX_SCHEDULES} schedules`, 'name');
    }
    if (dryRun) return changes;
    const now = new Date();
    const names = new Set([...changes.added, ...changes.changed.map(({ name }) => name)]);
    for (const definition of definitions) {
      if (names.has(definition.name)) await saveSchedule(transaction, environmentId, definition, now);
    }
    for (const name of changes.removed) await deleteSchedule(transaction, environmentId, name);
    const record = (action: Act['action'], thing: string) =>
      acts.record(transaction, { action, environmentId, thing });
    for (const name of changes.added) await record('schedule.created', name);
    for (const { name } of changes.changed) await record('schedule.changed', name);
    for (const name of changes.removed) await record('schedule.deleted', name);
    return changes;
  });
}

function compare(
  stored: readonly Schedule[],
  definitions: readonly ScheduleDefinition[],
  prune: boolean,
): ScheduleChanges {
  const existing = new Map(stored.map(({ definition }) => [definition.name, definition]));
  const names = new Set(definitions.map(({ name }) => name));
  const changed = definitions
    .map((definition) => ({
      name: definition.name,
      fields: changedFields(existing.get(definition.name) ?? definition, definition),
    }))
    .filter(({ fields }) => fields.length > 0);
  const added = [...names].filter((name) => !existing.has(name));
  return {
    added,
    changed,
    removed: prune ? [...existing.keys()].filter((name) => !names.has(name)) : [],
    unchanged: definitions.length - added.length - changed.length,
  };
}

function changedFields(before: ScheduleDefinition, after: ScheduleDefinition): string[] {
  const stored = JSON.parse(JSON.stringify(after)) as ScheduleDefinition;
  const fields = new Set([...Object.keys(before), ...Object.keys(stored)]) as Set<keyof ScheduleDefinition>;
  return [...fields].filter((field) => !isDeepStrictEqual(before[field], stored[field]));
}
