import { nextOf, walkPages } from '../../base/pages.ts';
import { propertyEntities } from '../../domain/entity.ts';
import { isObject, parseJsonText } from '../../formats/json-text.ts';
import type { Database } from '../../postgres/database.ts';
import type { CountedFinding, RulesDocument } from './document.ts';
import { openStage } from './stage.ts';
import { countRepeated, readStored, type StoredProperties } from './store.ts';

const CHECKED_AT_A_TIME = 5_000;

/** Reads up to `most` records per entity, in the order of their keys. */
export async function checkRules(db: Database, environmentId: number, document: RulesDocument, most: number) {
  const stage = openStage(document);
  const checked = { users: 0, companies: 0, events: 0 };
  const repeated: CountedFinding[] = [];
  for (const entity of propertyEntities) {
    if (document[entity] === undefined) continue;
    const read = async (after: StoredProperties | null) => {
      const limit = Math.min(CHECKED_AT_A_TIME, most - checked[entity]);
      const page = await readStored(db, environmentId, entity, after, limit);
      checked[entity] += page.length;
      const hasMore = page.length === limit && checked[entity] < most;
      return { page, next: nextOf(page, hasMore, (last) => last) };
    };
    for await (const { page } of walkPages(null, read)) {
      for (const { eventName, metadata } of page) {
        const parsed = parseJsonText(metadata);
        const properties = !('code' in parsed) && isObject(parsed.value) ? parsed.value : {};
        const { findings } = stage.judgeProperties(entity, properties, { eventName: eventName ?? undefined });
        stage.findings.add(findings);
      }
    }
    // Counts profiles that have the same value of a unique property. Loads do not check this.
    for (const [property, { unique }] of Object.entries(document[entity].properties ?? {})) {
      if (unique !== true || entity === 'events') continue;
      const records = await countRepeated(db, environmentId, entity, property);
      if (records > 0) repeated.push({ entity, property, rule: 'unique', otherwise: 'report', records });
    }
  }
  return { checked, findings: [...stage.findings.all, ...repeated] };
}
