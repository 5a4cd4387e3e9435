import { type InputError, inputError } from '../domain/errors.ts';
import { explainTaken, type TakenValue, type UniqueProperty } from '../domain/rules.ts';
import { writeJson } from '../formats/json-text.ts';
import { hasValue } from '../mapping/taken-values.ts';
import type { Claims } from '../postgres/stores/unique-values.ts';
import type { CompanyRecord, Properties, UserRecord } from './records.ts';

/** Lists the values of unique properties that records bring, in their order. */
export async function claimsOf(
  records: readonly (UserRecord | CompanyRecord)[],
  uniqueOf: (environmentId: number) => readonly UniqueProperty[] | Promise<readonly UniqueProperty[]>,
): Promise<readonly Claims[]> {
  const found = new Map<number, Claims>();
  const known = new Map<number, readonly UniqueProperty[]>();
  for (const record of records) {
    const { environmentId, marked } = record;
    const unique = known.get(environmentId) ?? (await uniqueOf(environmentId));
    known.set(environmentId, unique);
    for (const rule of unique) {
      const profile = profileOf(record, rule);
      const value = profile?.properties[rule.property] ?? null;
      if (profile === null || value === null) continue;
      const claims = found.get(environmentId) ?? { environmentId, unique, profiles: [] };
      found.set(environmentId, claims);
      const properties = writeJson({ [rule.property]: value }, marked);
      claims.profiles.push({ entity: rule.entity, key: profile.key, properties });
    }
  }
  return [...found.values()];
}

/** Leaves taken values out of records; `refused`: why some are refused, by their places. */
export function withoutTaken<T extends object>(
  records: readonly T[],
  taken: readonly TakenValue[],
): { readonly records: readonly T[]; readonly refused: ReadonlyMap<number, InputError> } {
  const refused = new Map<number, InputError>();
  const kept = records.map((record, at) => {
    let left = record;
    for (const value of taken) {
      if (!isProfile(left) || left.environmentId !== value.environmentId) continue;
      const profile = profileOf(left, value);
      if (profile === null || !value.ids.includes(profile.key)) continue;
      if (!hasValue(writeJson(profile.properties, left.marked), value)) continue;
      if (value.otherwise === 'refuse') {
        refused.set(at, inputError('breaks_rule', explainTaken(value), value.property));
        continue;
      }
      const { [value.property]: _, ...properties } = profile.properties;
      left = { ...left, [profile.of]: properties };
    }
    return left;
  });
  return { records: kept, refused };
}

export function isProfile(record: object): record is UserRecord | CompanyRecord {
  return 'properties' in record;
}

interface Named {
  readonly key: string;
  readonly of: 'properties' | 'company';
  readonly properties: Properties;
}

/** Returns what the record says of a profile of the entity; `null`: it names none. */
function profileOf(record: UserRecord | CompanyRecord, { entity }: UniqueProperty): Named | null {
  const { properties, companyId } = record;
  if ('userId' in record && entity === 'users') return { key: record.userId, of: 'properties', properties };
  if (entity === 'users' || !companyId) return null;
  return 'userId' in record
    ? { key: companyId, of: 'company', properties: record.company }
    : { key: companyId, of: 'properties', properties };
}
