import { listFieldChanges } from '../base/difference.ts';
import { UsageError } from '../cli/errors.ts';
import { defineSection, type ItemChange } from '../cli/seam.ts';
import { kinds } from '../domain/definitions.ts';
import { type DefinitionChanges, planDefinitions } from './apply-definitions.ts';
import { definitionsFile } from './definitions.ts';

export const definitionsSection = defineSection({
  name: 'definitions',
  reader: async () => definitionsFile,
  async plan(db, environmentId, declared, options) {
    const { changes, blockedBy, write } = await planDefinitions(db, environmentId, declared, options);
    if (blockedBy.length > 0) {
      throw new UsageError(
        `The definitions lack protected segments (${blockedBy.join(', ')}). Put them back, or apply once with is_protected: false.`,
      );
    }
    return { changes: listItems(changes), write };
  },
});

function listItems(changes: DefinitionChanges): ItemChange[] {
  return kinds.flatMap((kind) => {
    const { added, changed, removed } = changes[kind];
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
