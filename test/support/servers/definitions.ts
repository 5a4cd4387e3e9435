import type { Definitions, Lists, SegmentItem } from '../../../src/domain/definitions.ts';
import { applyDefinitions } from '../../../src/lookups/apply-definitions.ts';
import { readDefinitionsFile } from '../../../src/lookups/definitions.ts';
import type { DefinitionList } from '../../../src/lookups/seam.ts';
import type { Tenant, TestSystem } from './system.ts';

export const noItems: Definitions = {
  segments: [],
  surveys: [],
  embeds: [],
  flows: [],
  banners: [],
  spotlights: [],
  resource_center_modules: [],
  checklists: [],
  features: [],
  event_retention: [],
};

/** Reads a definitions file. Throws an error that lists the problems of the file. */
export function itemsOf(text: string | Uint8Array, lists: readonly DefinitionList[] = []): Definitions {
  const { value: items, problems } = readDefinitionsFile(Buffer.from(text), lists);
  if (items === null) throw new Error(problems.map(({ message }) => message).join('\n'));
  return items;
}

export function segmentItem(key: string, more: Partial<SegmentItem> = {}): SegmentItem {
  return {
    key,
    title: `Segment ${key}`,
    usage: 'analytics',
    category: 'custom',
    is_hidden: false,
    is_protected: false,
    status: 'active',
    made_by: 'file',
    definition: { property: 'plan', equals: key },
    ...more,
  };
}

/**
 * Replaces all definitions of an environment, including those of capabilities, with `items`.
 */
export function apply(
  { system }: TestSystem,
  { environment }: Tenant,
  items: Partial<Definitions> | Lists,
  options: Partial<Parameters<typeof applyDefinitions>[3]> = {},
) {
  const wanted = { ...noItems, ...items };
  return applyDefinitions(system.db, environment.environmentId, wanted, {
    dryRun: false,
    force: false,
    lists: [],
    ...options,
  });
}
