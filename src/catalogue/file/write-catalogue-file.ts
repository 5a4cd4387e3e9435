import { stringify } from 'yaml';
import type { CatalogueItems } from '../items/items.ts';

export const fileFormats = ['yaml', 'json'] as const;
export type FileFormat = (typeof fileFormats)[number];

/** A file that makes the same catalogue wherever it is applied. */
export function writeCatalogueFile(items: CatalogueItems, format: FileFormat): string {
  const { segments, ...others } = items;
  const content = {
    segments: segments.map((item) => ({ ...item, definition: inReadingOrder(item.definition) })),
    ...others,
  };
  if (format === 'json') return `${JSON.stringify(content, null, 2)}\n`;
  return stringify(content, { version: '1.2', schema: 'core', aliasDuplicateObjects: false, lineWidth: 100 });
}

/** What a condition is about comes first. */
const leading = ['all', 'any', 'not', 'property', 'company_property', 'event'];

/** jsonb keeps no order of names, so that one has to be given back. */
function inReadingOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inReadingOrder);
  if (typeof value !== 'object' || value === null) return value;
  const rank = (name: string): number => (leading.includes(name) ? 0 : 1);
  const members = Object.entries(value).sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, each]) => [name, inReadingOrder(each)]));
}
