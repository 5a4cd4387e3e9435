import type { KeyedItem, StoredDefinitions, StoredSegment } from '../../domain/definitions.ts';
import { type Column, printable, renderTable } from '../table.ts';
import type { Terminal } from '../terminal.ts';

const id = { title: 'id', align: 'right' } as const;
const column = (title: string): Column => ({ title });

/** A table for each kind that has items. */
export function printItems(terminal: Terminal, items: StoredDefinitions): void {
  const keyed = [column('key'), column('display name'), column('data type')];
  const sections: [title: string, columns: readonly Column[], rows: string[][]][] = [
    [
      'Segments',
      [id, ...['key', 'title', 'usage', 'category', 'status', 'is'].map(column)],
      items.segments.map(segmentCells),
    ],
    [
      'Surveys',
      [id, ...['key', 'title', 'platform'].map(column)],
      items.surveys.map(({ id, key, title, platform }) => [String(id), key, title, platform]),
    ],
    [
      'Modules of surveys',
      [id, ...['survey', 'order', 'key', 'type', 'question'].map(column)],
      items.surveys.flatMap(({ key: survey, modules }) =>
        modules.map(({ id, key, type, question }, at) => [
          String(id),
          survey,
          String(at + 1),
          key,
          type,
          question,
        ]),
      ),
    ],
    [
      'Embeds',
      [id, ...['key', 'title', 'type'].map(column)],
      items.embeds.map(({ id, key, title, type }) => [String(id), key, title, type]),
    ],
    ['Resource center modules', keyed, items.resource_center_modules.map(keyedCells)],
    ['Checklists', keyed, items.checklists.map(keyedCells)],
    ['Features', keyed, items.features.map(keyedCells)],
    [
      'Retention of events',
      [column('event'), { title: 'days', align: 'right' }],
      items.event_retention.map(({ key, days }) => [key, days === 0 ? 'for ever' : String(days)]),
    ],
  ];
  const shown = sections.filter(([, , rows]) => rows.length > 0);
  for (const [index, [title, columns, rows]] of shown.entries()) {
    if (index > 0) terminal.print('');
    terminal.print(terminal.style('bold', title));
    const cells = rows.map((row) => row.map((cell) => printable(cell, 60)));
    for (const line of renderTable(columns, cells)) terminal.print(line);
  }
}

function segmentCells(segment: StoredSegment): string[] {
  const { id, key, title, usage, category, status, is_hidden, is_protected } = segment;
  const is = [...(is_hidden ? ['hidden'] : []), ...(is_protected ? ['protected'] : [])];
  return [String(id), key, title, usage, category, status, is.join(', ')];
}

function keyedCells({ key, display_name, data_type }: KeyedItem): string[] {
  return [key, display_name, data_type];
}
