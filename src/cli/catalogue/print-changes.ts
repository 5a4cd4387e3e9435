import type { DefinitionChanges } from '../../definitions/apply-definitions.ts';
import { kinds } from '../../domain/definitions.ts';
import { formatCount } from '../format-numbers.ts';
import { printable, renderTable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

/** More of them nobody reads on a terminal; the table counts them all. */
const shownChanges = 200;

const columns = [
  { title: 'kind' },
  { title: 'added', align: 'right' },
  { title: 'changed', align: 'right' },
  { title: 'removed', align: 'right' },
  { title: 'unchanged', align: 'right' },
] as const;

/** Every item that is not as it was, and how many of each kind. */
export function printChanges(terminal: Terminal, changes: DefinitionChanges): void {
  const lines = listChanges(changes);
  for (const line of lines.slice(0, shownChanges)) terminal.print(line);
  const rest = lines.length - shownChanges;
  if (rest > 0) terminal.print(`… and ${formatCount(rest)} more; --json names them all`);
  if (lines.length > 0) terminal.print('');
  const rows = kinds.map((kind) => {
    const { added, changed, removed, unchanged } = changes[kind];
    const counts = [added.length, changed.length, removed.length, unchanged];
    return [kind, ...counts.map(formatCount)];
  });
  for (const line of renderTable(columns, rows)) terminal.print(line);
}

export function hasChanges(changes: DefinitionChanges): boolean {
  return listChanges(changes).length > 0;
}

function listChanges(changes: DefinitionChanges): string[] {
  return kinds.flatMap((kind) => {
    const { added, changed, removed } = changes[kind];
    const line = (sign: string, key: string): string => `${sign} ${kind}  ${printable(key, 100)}`;
    return [
      ...added.map(({ key }) => line('+', key)),
      ...changed.map(({ item, fields }) => `${line('~', item.key)}: ${fields.join(', ')}`),
      ...removed.map((key) => line('-', key)),
    ];
  });
}

/** The same for scripts: keys instead of items. */
export function renderChanges(changes: DefinitionChanges): object {
  return Object.fromEntries(
    kinds.map((kind) => {
      const { added, changed, removed, unchanged } = changes[kind];
      const rendered = {
        added: added.map(({ key }) => key),
        changed: changed.map(({ item, fields }) => ({ key: item.key, fields })),
        removed,
        unchanged,
      };
      return [kind, rendered];
    }),
  );
}
