/** The catalogue, and what applying a file changes in it, as a person reads them. */
import type { DefinitionChanges } from '../definitions/apply-definitions.ts';
import { type KeyedItem, kinds, type StoredDefinitions, type StoredSegment } from '../domain/definitions.ts';
import { type Column, columnsOf, formatCount, printable, printTable } from './format.ts';
import type { Terminal } from './terminal.ts';

/** More of them nobody reads on a terminal; the table counts them all. */
const shownChanges = 200;

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
  printTable(terminal, columnsOf('kind', '>added', '>changed', '>removed', '>unchanged'), rows);
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

type Section = readonly [title: string, columns: readonly Column[], rows: readonly string[][]];

/** A table for each kind that has items. */
export function printItems(terminal: Terminal, items: StoredDefinitions): void {
  const shown = sectionsOf(items).filter(([, , rows]) => rows.length > 0);
  for (const [index, [title, columns, rows]] of shown.entries()) {
    if (index > 0) terminal.print('');
    terminal.print(terminal.style('bold', title));
    const cells = rows.map((row) => row.map((cell) => printable(cell, 60)));
    printTable(terminal, columns, cells);
  }
}

function sectionsOf(items: StoredDefinitions): Section[] {
  const keyed = columnsOf('key', 'display name', 'data type');
  const modules = items.surveys.flatMap(({ key: survey, modules }) =>
    modules.map(({ id, key, type, question }, at) => [
      String(id),
      survey,
      String(at + 1),
      key,
      type,
      question,
    ]),
  );
  return [
    [
      'Segments',
      columnsOf('>id', 'key', 'title', 'usage', 'category', 'status', 'is'),
      items.segments.map(segmentCells),
    ],
    [
      'Surveys',
      columnsOf('>id', 'key', 'title', 'platform'),
      items.surveys.map(({ id, key, title, platform }) => [String(id), key, title, platform]),
    ],
    ['Modules of surveys', columnsOf('>id', 'survey', 'order', 'key', 'type', 'question'), modules],
    [
      'Embeds',
      columnsOf('>id', 'key', 'title', 'type'),
      items.embeds.map(({ id, key, title, type }) => [String(id), key, title, type]),
    ],
    ['Resource center modules', keyed, items.resource_center_modules.map(keyedCells)],
    ['Checklists', keyed, items.checklists.map(keyedCells)],
    ['Features', keyed, items.features.map(keyedCells)],
    [
      'Retention of events',
      columnsOf('event', '>days'),
      items.event_retention.map(({ key, days }) => [key, days === 0 ? 'for ever' : String(days)]),
    ],
  ];
}

function segmentCells(segment: StoredSegment): string[] {
  const { id, key, title, usage, category, status, is_hidden, is_protected } = segment;
  const is = [...(is_hidden ? ['hidden'] : []), ...(is_protected ? ['protected'] : [])];
  return [String(id), key, title, usage, category, status, is.join(', ')];
}

function keyedCells({ key, display_name, data_type }: KeyedItem): string[] {
  return [key, display_name, data_type];
}
