/* The role of each column, as it is chosen, and the map that says so. */

import type { Inspection } from '../../../../api/inspection.ts';
import type { Query } from '../../lib/address.ts';
import type { InspectedColumn } from '../../lib/records.ts';
import { mapOf } from './inspection.ts';

export type Role = 'user_id' | 'company_id' | 'property' | 'ignore' | 'other';

const ids: readonly string[] = ['user_id', 'company_id'];
/** Names that mean something of their own: a property of such a name is written with `metadata.` before it. */
const fixed: ReadonlySet<string> = new Set([
  ...ids,
  'metadata',
  'first_seen_at',
  'last_seen_at',
  'event_type',
  'event_id',
  'insert_id',
  'event_name',
  'source',
  'inserted_at',
  'url',
]);
const within = 'metadata.';

export function roleOf({ becomes }: InspectedColumn): Role {
  if (becomes === null) return 'ignore';
  if (ids.includes(becomes)) return becomes as Role;
  return becomes.startsWith(within) ? 'property' : 'other';
}

/** Returns the name of the property that the column becomes. */
export function propertyOf({ name, becomes }: InspectedColumn): string {
  return becomes?.startsWith(within) === true ? becomes.slice(within.length) : name;
}

type Map = Readonly<Record<string, string>>;

/**
 * Returns the columns under the page's current map, whatever map the answer is about: a choice shows at once, and an answer that
 * was already on its way does not revert it.
 */
function asChosen(columns: readonly InspectedColumn[], answered: Map, map: Map): InspectedColumn[] {
  return columns.map((column) => {
    const ours = map[column.name];
    return ours === answered[column.name] ? column : { ...column, becomes: becomesOf(column.name, ours) };
  });
}

/** Returns the inspection with the columns and the map that are chosen by now. */
export function withChoices(query: Query, found: Inspection): Inspection {
  const map = mapOf(query);
  return map === null ? found : { ...found, map, columns: asChosen(found.columns, found.map, map) };
}

function becomesOf(name: string, ours: string | undefined): string | null {
  if (ours === '') return null;
  if (ours === undefined) return within + name;
  return fixed.has(ours) || ours.startsWith(within) ? ours : within + ours;
}

/** Returns the map with another role for a column. An id belongs to one column: another that had it becomes a property. */
export function withRole(map: Map, columns: readonly InspectedColumn[], name: string, role: Role): Map {
  const changed: Record<string, string> = { ...map };
  if (role === 'property') setProperty(changed, name, name);
  else if (role === 'ignore') changed[name] = '';
  else if (role !== 'other') {
    const before = columns.find((column) => column.becomes === role && column.name !== name);
    if (before !== undefined) setProperty(changed, before.name, before.name);
    changed[name] = role;
  }
  return changed;
}

/** Returns the map with another name for the property that a column becomes. */
export function withProperty(map: Map, name: string, property: string): Map {
  const changed: Record<string, string> = { ...map };
  setProperty(changed, name, property);
  return changed;
}

function setProperty(map: Record<string, string>, name: string, property: string): void {
  const ours = fixed.has(property) ? within + property : property;
  if (ours === name) delete map[name];
  else map[name] = ours;
}
