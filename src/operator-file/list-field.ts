import type { Field } from './field.ts';
import type { Problems } from './problems.ts';
import { describeNode, quoted, type SourceNode } from './source.ts';

/** A list of items with a text, in their member `keyName`, that no two of them have in common. */
export function keyedList<T>(
  item: Field<T>,
  description: string,
  maxItems: number,
  keyName = 'key',
): Field<readonly T[]> {
  return listOf(item, description, maxItems, (items, problems) => noteRepeatedKeys(items, keyName, problems));
}

/** A list of items; `check` looks at it as a whole. */
export function listOf<T>(
  item: Field<T>,
  description: string,
  maxItems: number,
  check: (items: readonly SourceNode[], problems: Problems) => void = () => undefined,
): Field<readonly T[]> {
  return {
    schema: { type: 'array', description, items: item.schema, maxItems },
    read(node, problems) {
      if (node.kind === 'refused') return undefined;
      if (node.kind !== 'list') {
        const cure = node.kind === 'scalar' && node.value === null ? '; an empty one is written []' : '';
        problems.note(node, node.path, `must be a list, not ${describeNode(node)}${cure}`);
        return undefined;
      }
      if (node.items.length > maxItems) {
        problems.note(node, node.path, `has ${node.items.length} items; at most ${maxItems} are allowed`);
        return undefined;
      }
      check(node.items, problems);
      const items = node.items.map((each) => item.read(each, problems));
      return items.every((each) => each !== undefined) ? items : undefined;
    },
  };
}

/** Looks at the file itself: items that are wrong otherwise count too. */
function noteRepeatedKeys(items: readonly SourceNode[], keyName: string, problems: Problems): void {
  const lines = new Map<string, number>();
  for (const item of items) {
    if (item.kind !== 'object') continue;
    const key = item.members.find(({ name }) => name === keyName)?.value;
    if (key?.kind !== 'scalar' || typeof key.value !== 'string') continue;
    const line = lines.get(key.value);
    if (line === undefined) lines.set(key.value, key.line);
    else
      problems.note(
        key,
        key.path,
        `is ${quoted(key.value)}, as in line ${line}; each item needs a ${keyName} of its own`,
      );
  }
}
