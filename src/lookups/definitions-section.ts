import { listFieldChanges } from '../base/difference.ts';
import { UsageError } from '../cli/errors.ts';
import { defineSection, type ItemChange } from '../cli/seam.ts';
import type { Definitions } from '../domain/definitions.ts';
import { changesByList, type DefinitionChanges, planDefinitions } from './apply-definitions.ts';
import { definitionsFile } from './definitions.ts';
import type { DefinitionSection } from './seam.ts';

/** The definitions as one section of the file of an environment. */
export const definitionsSection = (sections: readonly DefinitionSection[]) =>
  defineSection({
    name: 'definitions',
    reader: async () => definitionsFile(sections),
    async plan(db, environmentId, declared, { prune }) {
      const definitions = declared as Definitions;
      const options = { prune, sections };
      const { changes, blockedBy, write } = await planDefinitions(db, environmentId, definitions, options);
      if (blockedBy.length > 0) {
        throw new UsageError(
          `The definitions lack protected segments (${blockedBy.join(', ')}). Put them back, or apply once with is_protected: false.`,
        );
      }
      return { changes: listItems(changes), write };
    },
  });

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
