import type { ColumnMap } from '../../domain/column-map.ts';
import { idColumn, type LoadEntity } from '../../domain/entity.ts';
import type { FileValues } from './file-values.ts';

/** Names that ids go by, without case, blanks and signs; those that say it best first. */
const userNames: readonly string[] = [
  'userid',
  'uid',
  'userno',
  'usernumber',
  'customerid',
  'customerno',
  'customernumber',
  'clientid',
  'contactid',
  'memberid',
  'personid',
  'subscriberid',
  'externalid',
  'distinctid',
  'anonymousid',
  'kundennummer',
  'kundennr',
  'id',
  'user',
  'login',
  'username',
  'email',
  'emailaddress',
  'mail',
];
const companyNames: readonly string[] = [
  'companyid',
  'accountid',
  'organizationid',
  'organisationid',
  'orgid',
  'workspaceid',
  'tenantid',
  'teamid',
  'groupid',
];
/** Of a file of companies, its id too. */
const ownCompanyNames = [...companyNames, 'companyno', 'company', 'id', 'domain', 'name'];

/** A column that may be an id. */
export interface Proposal {
  readonly map: ColumnMap;
  /** By column of theirs: why. */
  readonly reasons: ReadonlyMap<string, string>;
}

/**
 * Names the columns that may be the id that a file must have, by their names; null if none of them looks like one. It is a guess that a
 * person is shown: no load follows it unasked.
 */
export function proposeByName(
  columns: readonly string[],
  map: ColumnMap,
  entity: LoadEntity,
): Proposal | null {
  const free = columns.filter((column) => !Object.hasOwn(map, column));
  const user = entity === 'companies' ? undefined : find(free, userNames);
  const company = find(free, entity === 'companies' ? ownCompanyNames : companyNames);
  if (user === undefined && (company === undefined || entity === 'users')) return null;
  const found = [
    [user, idColumn.users],
    [company, idColumn.companies],
  ].filter((pair): pair is [string, string] => pair[0] !== undefined);
  return {
    map: { ...map, ...Object.fromEntries(found) },
    reasons: new Map(found.map(([column, ours]) => [column, `its name looks like that of a ${ours}`])),
  };
}

/** Of fewer records, nearly every column has a different value in each. */
const leastRecords = 3;

/** Names the first column with a different value in every record; `null` if there is none. It is a guess as well. */
export function proposeByValues(
  columns: readonly string[],
  values: FileValues,
  map: ColumnMap,
  entity: LoadEntity,
): Proposal | null {
  // The supposed header may be a comment above the real one.
  if (values.records < leastRecords || columns[0]?.startsWith('# ')) return null;
  const column = columns.find((name) => {
    if (Object.hasOwn(map, name)) return false;
    const { filled, distinct } = values.summaryOf(name);
    return filled === values.records && distinct === filled;
  });
  if (column === undefined) return null;
  const ours = idColumn[entity === 'companies' ? entity : 'users'];
  const reason = `the first column with a value in each of the ${values.records} records looked at, and no value twice`;
  return { map: { ...map, [column]: ours }, reasons: new Map([[column, reason]]) };
}

function find(columns: readonly string[], names: readonly string[]): string | undefined {
  const byName = new Map(
    columns.map((column) => [column.toLowerCase().replace(/[^\p{L}\p{N}]/gu, ''), column]),
  );
  return names.map((name) => byName.get(name)).find((column) => column !== undefined);
}
