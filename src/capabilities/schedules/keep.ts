import { lockEnvironment } from '../../access/environment-store.ts';
import { type FieldChange, listFieldChanges } from '../../base/difference.ts';
import { type InputError, inputError } from '../../base/errors.ts';
import type { ItemChange, PlanOptions, SectionPlan } from '../../cli/seam.ts';
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

/** A definition is checked before it is stored. */
const toSchedule = (stored: StoredSchedule): Schedule => ({
  ...stored,
  definition: stored.definition as ScheduleDefinition,
});

/** If `environmentId` is `null`, reads all environments. Sorts by environment and name. */
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
 * Reads a schedule, and locks it until the transaction ends. Returns `null` if the schedule is
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

/** @throws InputError `not_found` */
export async function pauseSchedule(
  context: ActContext,
  environmentId: number,
  name: string,
  isPaused: boolean,
): Promise<void> {
  await requireSchedule(context.db, environmentId, name);
  const action = isPaused ? 'schedule.paused' : 'schedule.resumed';
  await act(
    context,
    (db) => setPaused(db, environmentId, name, isPaused, new Date()),
    (isChanged) => (isChanged ? { action, environmentId, thing: name } : null),
  );
}

interface ApplyOptions {
  readonly prune: boolean;
  readonly dryRun: boolean;
}

export interface ScheduleChanges {
  readonly added: readonly string[];
  readonly changed: readonly { readonly name: string; readonly fields: readonly string[] }[];
  readonly removed: readonly string[];
  readonly unchanged: number;
}

/** @throws InputError `invalid_field` */
export function applySchedules(
  { db, acts }: ActContext,
  environmentId: number,
  definitions: readonly ScheduleDefinition[],
  { prune, dryRun }: ApplyOptions,
): Promise<ScheduleChanges> {
  return db.transaction().execute(async (transaction) => {
    if (!dryRun) await lockEnvironment(transaction, environmentId);
    const { changes, write } = await planSchedules(transaction, environmentId, definitions, { prune });
    if (!dryRun) await write(acts);
    const namesOf = (action: ItemChange['action']) =>
      changes.filter((change) => change.action === action).map(({ item }) => item);
    const changed = changes.filter(({ action }) => action === 'change');
    return {
      added: namesOf('add'),
      changed: changed.map(({ item, fields }) => ({ name: item, fields: firstNames(fields) })),
      removed: namesOf('remove'),
      unchanged: definitions.length - namesOf('add').length - changed.length,
    };
  });
}

const firstNames = (fields: readonly FieldChange[]) => [
  ...new Set(fields.map(({ field }) => field.replace(/[.[].*$/s, ''))),
];

const actOf = {
  add: 'schedule.created',
  change: 'schedule.changed',
  remove: 'schedule.deleted',
} as const;

/** @throws InputError `invalid_field` */
export async function planSchedules(
  transaction: Database,
  environmentId: number,
  definitions: readonly ScheduleDefinition[],
  { prune }: PlanOptions,
): Promise<SectionPlan> {
  const stored = await readSchedules(transaction, environmentId);
  const changes = compare(stored, definitions, prune);
  const added = changes.filter(({ action }) => action === 'add').length;
  const removed = changes.filter(({ action }) => action === 'remove');
  if (stored.length + added - removed.length > MAX_SCHEDULES) {
    throw inputError('invalid_field', `An environment has at most ${MAX_SCHEDULES} schedules`, 'name');
  }
  return {
    changes,
    async write(acts) {
      const now = new Date();
      const names = new Set(changes.map(({ item }) => item));
      for (const definition of definitions) {
        if (names.has(definition.name)) await saveSchedule(transaction, environmentId, definition, now);
      }
      for (const { item } of removed) await deleteSchedule(transaction, environmentId, item);
      for (const { action, item: thing } of changes) {
        await acts.record(transaction, { action: actOf[action], environmentId, thing });
      }
    },
  };
}

function compare(
  stored: readonly Schedule[],
  definitions: readonly ScheduleDefinition[],
  prune: boolean,
): ItemChange[] {
  const remaining = new Map(stored.map(({ definition }) => [definition.name, definition]));
  const changes = definitions.flatMap((definition): ItemChange[] => {
    const item = definition.name;
    const before = remaining.get(item);
    remaining.delete(item);
    if (before === undefined) return [{ action: 'add', item, fields: [] }];
    const fields = listFieldChanges(before, definition);
    return fields.length === 0 ? [] : [{ action: 'change', item, fields }];
  });
  const removed = prune ? [...remaining.keys()] : [];
  return [...changes, ...removed.map((item) => ({ action: 'remove', item, fields: [] }) as const)];
}
