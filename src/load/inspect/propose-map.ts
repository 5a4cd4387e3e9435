import type { ColumnMap } from '../../domain/column-map.ts';
import { idColumn, type LoadEntity } from '../../domain/entity.ts';

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
 * Which of the columns may be the id that a file must have, by their names; null if none of them looks like one. It is a guess that a
 * person is shown: no load follows it unasked.
 */
export function proposeMap(columns: readonly string[], map: ColumnMap, entity: LoadEntity): Proposal | null {
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

function find(columns: readonly string[], names: readonly string[]): string | undefined {
  const byName = new Map(
    columns.map((column) => [column.toLowerCase().replace(/[^\p{L}\p{N}]/gu, ''), column]),
  );
  return names.map((name) => byName.get(name)).find((column) => column !== undefined);
}
