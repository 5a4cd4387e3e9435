import { listFieldChanges } from '../../base/difference.ts';
import { defineSection, type ItemChange } from '../../cli/seam.ts';
import { propertyEntities } from '../../domain/entity.ts';
import { personalActionsOf, type RulesDocument } from './document.ts';
import { rulesFile } from './file.ts';
import { insertRules, readRules, rulesCommitted } from './store.ts';

/** The rules of each property are an item. All other rules of an entity are one item together. */
export const rulesSection = defineSection({
  name: 'rules',
  open: async ({ config }) => ({
    file: {
      ...rulesFile,
      checkValue(root, declared) {
        const isHashing = personalActionsOf(declared as RulesDocument).includes('hash');
        if (config.personalKey !== null || !isHashing) return;
        root.report('cannot hash personal values without a key: set PERSONAL_KEY (docs/personal-data.md)');
      },
    },
    async plan(db, environmentId, declared, { prune }) {
      const before = await readRules(db, environmentId);
      const stored = before?.document ?? {};
      const document = prune ? (declared as RulesDocument) : merge(stored, declared as RulesDocument);
      let version = before;
      return {
        changes: listItems(stored, document),
        async write(acts) {
          version = await insertRules({ db, acts }, environmentId, document, { before, appliedBy: null });
        },
        async afterCommit(committed) {
          if (version !== null) await rulesCommitted(committed, version);
        },
      };
    },
  }),
});

/** `declared` takes precedence. */
function merge(stored: RulesDocument, declared: RulesDocument): RulesDocument {
  const entries = propertyEntities.flatMap((entity) => {
    const [before, after] = [stored[entity], declared[entity]];
    if (before === undefined || after === undefined) {
      const only = after ?? before;
      return only === undefined ? [] : [[entity, only] as const];
    }
    const properties = { ...before.properties, ...after.properties };
    const hasProperties = before.properties !== undefined || after.properties !== undefined;
    return [[entity, { ...before, ...after, ...(hasProperties ? { properties } : {}) }] as const];
  });
  return Object.fromEntries(entries);
}

function listItems(before: RulesDocument, after: RulesDocument): ItemChange[] {
  const stored = itemsOf(before);
  const planned = itemsOf(after);
  const names = [...new Set([...stored.keys(), ...planned.keys()])].toSorted();
  return names.flatMap((item): ItemChange[] => {
    const [old, now] = [stored.get(item), planned.get(item)];
    if (old === undefined) return [{ action: 'add', item, fields: [] }];
    if (now === undefined) return [{ action: 'remove', item, fields: [] }];
    const fields = listFieldChanges(old, now);
    return fields.length === 0 ? [] : [{ action: 'change', item, fields }];
  });
}

function itemsOf(document: RulesDocument): ReadonlyMap<string, object> {
  const items = new Map<string, object>();
  for (const entity of propertyEntities) {
    const { properties = {}, ...others } = document[entity] ?? {};
    if (Object.keys(others).length > 0) items.set(entity, others);
    for (const [name, rule] of Object.entries(properties)) items.set(`${entity}.${name}`, rule);
  }
  return items;
}
