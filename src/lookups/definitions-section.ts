import { listFieldChanges } from '../base/difference.ts';
import { UsageError } from '../cli/errors.ts';
import { defineSection, type ItemChange } from '../cli/seam.ts';
import type { Definitions, Lists } from '../domain/definitions.ts';
import type { Database } from '../postgres/database.ts';
import {
  changesByList,
  type DefinitionChanges,
  describeApplied,
  planDefinitions,
} from './apply-definitions.ts';
import { definitionsFile } from './definitions.ts';
import type { DefinitionList } from './seam.ts';

/** For a file that describes a whole environment. */
export const definitionsSection = (lists: readonly DefinitionList[]) =>
  defineSection({
    name: 'definitions',
    open: async () => ({
      file: definitionsFile(lists),
      async plan(db, environmentId, declared, { prune }) {
        const definitions = declared as Definitions;
        const plan = await planDefinitions(db, environmentId, definitions, { prune, lists });
        const { blockedBy } = plan;
        if (blockedBy.length > 0) {
          throw new UsageError(
            `The definitions lack protected segments (${blockedBy.join(', ')}). Put them back, or apply once with is_protected: false.`,
          );
        }
        if (!prune) await requireDistinct(db, environmentId, definitions, lists);
        return {
          changes: listItems(plan.changes),
          async write(acts) {
            await plan.write();
            const act = describeApplied(environmentId, plan, { dryRun: false });
            if (act !== null) await acts.record(db, act);
          },
        };
      },
    }),
  });

/** Refuses a key that differs only in case from a stored one that is kept. @throws UsageError */
async function requireDistinct(
  db: Database,
  environmentId: number,
  definitions: Definitions,
  lists: readonly DefinitionList[],
): Promise<void> {
  for (const { name, table } of lists.filter(({ ignoresCase }) => ignoresCase)) {
    const declared = new Map(listOf(definitions, name).map((key) => [key.toLowerCase(), key]));
    for (const { key } of await table.read(db, environmentId)) {
      const rival = declared.get(key.toLowerCase()) ?? key;
      if (rival !== key)
        throw new UsageError(`${name} has ${rival}, and ${key} is stored. Use one form, or --prune.`);
    }
  }
}

const listOf = (definitions: Lists, name: string): string[] =>
  (definitions[name] ?? []).map(({ key }) => key);

function listItems(changes: DefinitionChanges): ItemChange[] {
  return changesByList(changes).flatMap(([kind, { added, changed, removed }]) => {
    const name = (key: string): string => `${kind}.${key}`;
    return [
      ...added.map(({ key }) => ({ action: 'add', item: name(key), fields: [] }) as const),
      ...changed.map(({ before, item }) => {
        return { action: 'change', item: name(item.key), fields: listFieldChanges(before, item) } as const;
      }),
      ...removed.map((key) => ({ action: 'remove', item: name(key), fields: [] }) as const),
    ];
  });
}
