import { isDeepStrictEqual } from 'node:util';

/** What makes the stored items those that are wanted. */
export interface Changes<Item> {
  readonly added: readonly Item[];
  readonly changed: readonly ChangedItem<Item>[];
  /** Keys. */
  readonly removed: readonly string[];
  readonly unchanged: number;
}

export interface ChangedItem<Item> {
  readonly item: Item;
  /** Which of its fields are not as they were. */
  readonly fields: readonly string[];
}

/** Both as a file has them; each in the order of its list. */
export function compareItems<Item extends { readonly key: string }>(
  stored: readonly Item[],
  wanted: readonly Item[],
): Changes<Item> {
  const known = new Map(stored.map((item) => [item.key, item]));
  const added: Item[] = [];
  const changed: ChangedItem<Item>[] = [];
  for (const item of wanted) {
    const before = known.get(item.key);
    known.delete(item.key);
    if (before === undefined) added.push(item);
    else {
      const fields = changedFields(before, item);
      if (fields.length > 0) changed.push({ item, fields });
    }
  }
  const unchanged = wanted.length - added.length - changed.length;
  return { added, changed, removed: [...known.keys()], unchanged };
}

function changedFields<Item extends object>(before: Item, after: Item): string[] {
  return (Object.keys(after) as (keyof Item & string)[]).filter(
    (name) => !isDeepStrictEqual(before[name], asStored(after[name])),
  );
}

/** -0 comes back as 0. */
function asStored(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
