import type { ColumnMap } from '../../domain/column-map.ts';
import { isAutomaticProperty } from '../../domain/entity.ts';
import type { ColumnPlan } from '../../mapping/column-plan.ts';
import type { ValuesSummary } from './values.ts';

/** A column, or a key of the records, and its use. */
export interface InspectedColumn extends ValuesSummary {
  /** The name in the file. */
  readonly name: string;
  /** `user_id`, `metadata.plan`, …; null: it is passed over. */
  readonly becomes: string | null;
  readonly reason: string;
}

/** Values by field, and of properties by `metadata.<name>`. */
interface Values {
  readonly names: readonly string[];
  summaryOf(name: string): ValuesSummary;
}

type OwnValues = Pick<Values, 'summaryOf'>;

interface Why {
  readonly given: ColumnMap;
  readonly mapSays: string;
  /** Reasons by column that a map is proposed for. */
  readonly reasons: ReadonlyMap<string, string>;
}

const isProperty = 'every other column is a property';

/**
 * Describes the columns of a CSV, in its order, then the properties from a column of JSON. A column with no target, or with
 * several, is described by its cells.
 */
export function describeColumns(
  { roles, names }: ColumnPlan,
  columns: readonly string[],
  values: Values,
  cells: OwnValues,
  { given, mapSays, reasons }: Why,
): InspectedColumn[] {
  const stored = new Set(values.names);
  const described = columns.map((name, index): InspectedColumn => {
    const role = roles[index] ?? 'ignored';
    const own = names[index] ?? name;
    const becomes = role === 'ignored' ? null : role === 'property' ? `metadata.${own}` : role;
    const reason = Object.hasOwn(given, name) ? mapSays : (reasons.get(name) ?? reasonOf(role, own));
    const isStored = becomes !== null && stored.has(becomes);
    return { name, becomes, reason, ...(isStored ? values.summaryOf(becomes) : cells.summaryOf(name)) };
  });
  const shown = new Set(described.map(({ becomes }) => becomes));
  const others = values.names.filter((name) => name.startsWith('metadata.') && !shown.has(name));
  return [...described, ...others.map((name) => member(name, values))];
}

function reasonOf(role: string, name: string): string {
  switch (role) {
    case 'property':
      return isProperty;
    case 'metadata':
      return 'its JSON objects are properties';
    case 'ignored':
      return isAutomaticProperty(name)
        ? 'it is kept for every profile, and nobody can set it'
        : 'it says why a record was refused';
    default:
      return 'its name says so';
  }
}

const member = (name: string, values: Values): InspectedColumn => ({
  name,
  becomes: name,
  reason: 'a member of the column metadata',
  ...values.summaryOf(name),
});

/** Describes the columns or keys of a file from which nothing can be stored, as they stand in it. */
export function describeUnread(names: readonly string[], cells: OwnValues): InspectedColumn[] {
  const reason = 'no record can be stored without an id';
  return names.map((name) => ({ name, becomes: null, reason, ...cells.summaryOf(name) }));
}

/** Describes the fields of the records of a file without columns. */
export function describeKeys(
  values: Values,
  map: ColumnMap,
  { mapSays, reasons }: Omit<Why, 'given'>,
): InspectedColumn[] {
  const theirs = new Map(Object.entries(map).map(([name, ours]) => [ours, name]));
  return values.names.map((becomes) => {
    const own = becomes.replace(/^metadata\./, '');
    const name = theirs.get(own) ?? own;
    const said = theirs.has(own)
      ? mapSays
      : becomes === own
        ? 'its name says so'
        : 'every other key is a property';
    return { name, becomes, reason: reasons.get(name) ?? said, ...values.summaryOf(becomes) };
  });
}
