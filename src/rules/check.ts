import { CHECKED_AT_A_TIME } from '../base/limits.ts';
import { type PropertyEntity, propertyEntities } from '../domain/entity.ts';
import { isObject, parseJsonText } from '../formats/json-text.ts';
import type { Database } from '../postgres/database.ts';
import { compileRules, type EntityStage, FindingCounts } from './compile.ts';
import type { CountedFinding, PropertyRule, RulesDocument } from './document.ts';
import { countRepeated, readStored, type StoredProperties } from './store.ts';

export interface CheckedRules {
  /** Records that were looked at. */
  readonly checked: Readonly<Record<PropertyEntity, number>>;
  /** Stored records that break rules, those that would be refused too. */
  readonly findings: readonly CountedFinding[];
}

/** Counts what is stored and breaks the rules: of each entity `most` records, in the order of their keys. */
export async function checkRules(
  db: Database,
  environmentId: number,
  document: RulesDocument,
  most: number,
): Promise<CheckedRules> {
  const stages = compileRules(document);
  const checked = { users: 0, companies: 0, events: 0 };
  const counts = new FindingCounts();
  for (const entity of propertyEntities) {
    const stage = stages[entity];
    if (stage === null || document[entity] === undefined) continue;
    for (let after: StoredProperties | null = null; checked[entity] < most; ) {
      const limit = Math.min(CHECKED_AT_A_TIME, most - checked[entity]);
      const page: StoredProperties[] = await readStored(db, environmentId, entity, after, limit);
      for (const record of page) checkRecord(stage, record, counts);
      checked[entity] += page.length;
      after = page.at(-1) ?? null;
      if (page.length < limit) break;
    }
    counts.addCounted(await findRepeated(db, environmentId, entity, document[entity]?.properties ?? {}));
  }
  return { checked, findings: counts.all };
}

function checkRecord(
  stage: EntityStage,
  { eventName, metadata }: StoredProperties,
  counts: FindingCounts,
): void {
  const parsed = parseJsonText(metadata);
  stage.begin();
  if (eventName !== null) stage.judgeName(() => eventName);
  if (!('code' in parsed) && isObject(parsed.value)) stage.judgeAll(parsed.value);
  stage.end(false);
  counts.add(stage.findings);
}

/** Counts the profiles that share a value of a property that the rules call unique. Loads do not look at it. */
async function findRepeated(
  db: Database,
  environmentId: number,
  entity: PropertyEntity,
  properties: Readonly<Record<string, PropertyRule>>,
): Promise<CountedFinding[]> {
  const findings: CountedFinding[] = [];
  for (const [property, { unique }] of Object.entries(properties)) {
    if (unique !== true || entity === 'events') continue;
    const records = await countRepeated(db, environmentId, entity, property);
    if (records > 0) findings.push({ entity, property, rule: 'unique', otherwise: 'report', records });
  }
  return findings;
}
