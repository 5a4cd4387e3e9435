import { InputError } from '../../base/errors.ts';
import { plural } from '../../base/wording.ts';
import type { ColumnMap } from '../../domain/column-map.ts';
import { idColumn, isAutomaticProperty } from '../../domain/entity.ts';
import type { LoadOptions } from '../../domain/load.ts';
import type { Preset } from '../../domain/source.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { LoadContext } from '../../load/context.ts';
import { foreignProblem } from '../../load/foreign-file.ts';
import { type ColumnPlan, planFile, requireRecord } from '../../load/map/column-plan.ts';
import type { ForeignRecords } from '../../load/map/foreign.ts';
import type { DescribedColumn, NamedValues } from './values.ts';

export type InspectOptions = Pick<LoadOptions, 'entity' | 'map' | 'preset'> & Pick<LoadContext, 'rewriter'>;

export interface Chosen {
  readonly map: ColumnMap;
  readonly preset: Preset | null;
  readonly reasons: ReadonlyMap<string, string>;
  /** `null` unless the file is a CSV file with an id column. */
  readonly plan: ColumnPlan | null;
  readonly problem: InputError | null;
  /** The records come from another product, such as Segment. No column is proposed as an id. */
  readonly isForeign: boolean;
}

export function withoutProposal({ map, preset }: Pick<InspectOptions, 'map' | 'preset'>): Chosen {
  return { map, preset, reasons: new Map(), plan: null, problem: null, isForeign: false };
}

/** A preset and a map exclude each other. */
export function chooseForeign(
  options: InspectOptions,
  foreign: ForeignRecords,
  names: readonly string[],
): Chosen {
  const preset = Object.keys(options.map).length === 0 ? foreign.preset : null;
  return { ...withoutProposal(options), preset, problem: foreignProblem(foreign, names), isForeign: true };
}

export function lacksId({ problem, reasons, isForeign }: Chosen): boolean {
  return problem?.problems[0].code === 'unrecognised_columns' && reasons.size === 0 && !isForeign;
}

/**
 * Chooses how the file is read. If the caller's map results in no id column, uses a map proposed
 * from the column names. For a JSON file, `names` are the keys of its first records.
 */
export function choose(
  header: CsvHeader | null,
  names: readonly string[],
  options: InspectOptions,
  isForeign: boolean,
  values: NamedValues,
): Chosen {
  const chosen = { ...withoutProposal(options), isForeign, ...tryPlan(header, names, options.map, options) };
  if (!lacksId(chosen)) return chosen;
  return withProposal(chosen, proposeByName(names, options, values), header, options);
}

export function withProposal(
  chosen: Chosen,
  proposal: Proposal | null,
  header: CsvHeader | null,
  options: InspectOptions,
): Chosen {
  if (proposal === null) return chosen;
  const plan = header && tryPlan(header, [], proposal.map, options).plan;
  return { ...chosen, ...proposal, plan };
}

function tryPlan(
  header: CsvHeader | null,
  names: readonly string[],
  map: ColumnMap,
  { entity, rewriter }: InspectOptions,
): Pick<Chosen, 'plan' | 'problem'> {
  try {
    if (header !== null) return { plan: planFile(header, map, entity, rewriter?.recognise), problem: null };
    requireRecord({ keys: names, arrays: [] }, map);
    return { plan: null, problem: null };
  } catch (problem) {
    if (!(problem instanceof InputError)) throw problem;
    return { plan: null, problem };
  }
}

/** Names of id columns, best first, in lower case and with only letters and digits. */
const userNames =
  'userid uid userno usernumber customerid customerno customernumber clientid contactid memberid personid subscriberid externalid distinctid anonymousid kundennummer kundennr id user login username email emailaddress mail'.split(
    ' ',
  );
const companyNames =
  'companyid accountid organizationid organisationid orgid workspaceid tenantid teamid groupid'.split(' ');
const companyFileNames = [...companyNames, 'companyno', 'company', 'id', 'domain', 'name'];

interface Proposal {
  readonly map: ColumnMap;
  readonly reasons: ReadonlyMap<string, string>;
}

/** Returns `null` if no name matches. A person has to confirm a proposal. */
function proposeByName(
  columns: readonly string[],
  { map, entity }: InspectOptions,
  values: NamedValues,
): Proposal | null {
  const free = columns.filter((column) => !Object.hasOwn(map, column));
  const user = entity === 'companies' ? undefined : find(free, userNames, values);
  const company = find(free, entity === 'companies' ? companyFileNames : companyNames, values);
  if (user === undefined && (company === undefined || entity === 'users')) return null;
  const ids = [
    [user, idColumn.users],
    [company, idColumn.companies],
  ].filter((pair): pair is [string, string] => pair[0] !== undefined);
  return {
    map: { ...map, ...Object.fromEntries(ids) },
    reasons: new Map(ids.map(([column, ours]) => [column, reasonByName(column, ours, values)])),
  };
}

function reasonByName(column: string, ours: string, values: NamedValues): string {
  const { filled, distinct } = values.summaryOf(column);
  const seen = `filled in ${filled} of ${plural(values.records, 'record')}, ${plural(distinct, 'distinct value')}`;
  return `its name looks like that of a ${ours} (${seen})`;
}

/**
 * Minimum number of records for a proposal. With fewer records, nearly every column has distinct
 * values.
 */
const leastRecords = 3;

export function proposeByValues(
  columns: readonly string[],
  values: NamedValues,
  { map, entity }: InspectOptions,
): Proposal | null {
  // A header that begins with `# ` is probably a comment above the real header.
  if (values.records < leastRecords || columns[0]?.startsWith('# ')) return null;
  const column = columns.find((name) => {
    if (Object.hasOwn(map, name)) return false;
    const { filled, distinct, type } = values.summaryOf(name);
    return filled === values.records && distinct === filled && type !== 'date';
  });
  if (column === undefined) return null;
  const ours = idColumn[entity === 'companies' ? entity : 'users'];
  const reason = `the first column with a value in each of the ${values.records} records looked at, and no value twice`;
  return { map: { ...map, [column]: ours }, reasons: new Map([[column, reason]]) };
}

/** An id column has a value in at least this share of the records. */
const leastFilled = 0.9;
/** At least this share of the values in an id column is distinct. */
const leastDistinct = 0.5;

/**
 * Finds a column that has one of the `names`, which are sorted best first. Prefers columns whose
 * values look like ids.
 */
function find(columns: readonly string[], names: readonly string[], values: NamedValues): string | undefined {
  const byName = new Map(columns.map((column) => [plainName(column), column]));
  const named = names.flatMap((name) => byName.get(name) ?? []);
  const mayBeId = (column: string): boolean => {
    const { filled, distinct } = values.summaryOf(column);
    return filled >= leastFilled * values.records && distinct >= leastDistinct * filled;
  };
  return named.find(mayBeId) ?? named[0];
}

interface Why {
  readonly map: ColumnMap;
  readonly reasons: ReadonlyMap<string, string>;
}

const mapSays = 'map says so';
const isProperty = 'every other column is a property';

/** Properties inside a JSON column follow the columns of the CSV file. */
export function describeColumns(
  { roles, names }: ColumnPlan,
  columns: readonly string[],
  values: NamedValues,
  cells: NamedValues,
  { map, reasons }: Why,
): DescribedColumn[] {
  const stored = new Set(values.names);
  const described = columns.map((name, index): DescribedColumn => {
    const role = roles[index] ?? 'ignored';
    const storedName = names[index] ?? name;
    const propertyName = role === 'property' ? `metadata.${storedName}` : role;
    const becomes = role === 'ignored' ? null : propertyName;
    const reason = Object.hasOwn(map, name) ? mapSays : (reasons.get(name) ?? reasonOf(role, storedName));
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

const member = (name: string, values: NamedValues): DescribedColumn => ({
  name,
  becomes: name,
  reason: 'a member of the column metadata',
  ...values.summaryOf(name),
});

export function describeUnread(names: readonly string[], cells: NamedValues): DescribedColumn[] {
  const reason = 'the file cannot be loaded as it is';
  return names.map((name) => ({ name, becomes: null, reason, ...cells.summaryOf(name) }));
}

export function describeKeys(values: NamedValues, { map, preset, reasons }: Chosen): DescribedColumn[] {
  const theirs = new Map(Object.entries(map).map(([name, ours]) => [ours, name]));
  return values.names.map((becomes) => {
    const field = becomes.replace(/^metadata\./, '');
    const name = theirs.get(field) ?? field;
    const byName = becomes === field ? 'its name says so' : 'every other key is a property';
    const own = theirs.has(field) ? mapSays : byName;
    const reason = preset === null ? (reasons.get(name) ?? own) : `preset=${preset} says so`;
    return { name, becomes, reason, ...values.summaryOf(becomes) };
  });
}

function plainName(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}
