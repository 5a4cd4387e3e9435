/** Times, texts and tables as a person reads them on a terminal. */
import type { Terminal } from './terminal.ts';

/** `2026-11-20 03:00:00Z`, or a dash. */
export function formatTime(at: Date | null): string {
  return at === null ? '–' : `${at.toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** What came from a file or a caller, fit for a terminal: control characters would move its cursor. */
export function printable(text: string, longest: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) =>
    c === '\n' ? '⏎' : c === '\t' ? ' ' : '�',
  );
  return clean.length > longest ? `${clean.slice(0, longest - 1)}…` : clean;
}

export interface Column {
  readonly title: string;
  readonly align?: 'left' | 'right';
}

/** Columns by their titles; `>rows` is aligned to the right. */
export function columnsOf(...titles: readonly string[]): readonly Column[] {
  return titles.map((title) =>
    title.startsWith('>') ? { title: title.slice(1), align: 'right' } : { title },
  );
}

const gap = '  ';

/** Lines of a table, as wide as its cells need. */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...rows.map((row) => row[index]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    columns
      .map(({ align }, index) => {
        const [cell, width] = [cells[index] ?? '', widths[index] ?? 0];
        return align === 'right' ? cell.padStart(width) : cell.padEnd(width);
      })
      .join(gap)
      .trimEnd();
  return [
    line(columns.map(({ title }) => title)),
    line(widths.map((width) => '─'.repeat(width))),
    ...rows.map(line),
  ];
}

export function printTable(
  terminal: Pick<Terminal, 'print'>,
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): void {
  for (const line of renderTable(columns, rows)) terminal.print(line);
}

interface List<T> {
  readonly items: readonly T[];
  /** An item of the JSON array. */
  readonly render: (item: T) => unknown;
  readonly columns: readonly Column[];
  readonly cells: (item: T) => string[];
  /** What is said instead of an empty table. */
  readonly none: string;
}

/** A list as every command shows it: an array for scripts, a table for a person. */
export function printList<T>(
  { terminal, json }: { readonly terminal: Terminal; readonly json: boolean },
  { items, render, columns, cells, none }: List<T>,
): void {
  if (json) terminal.json(items.map(render));
  else if (items.length === 0) terminal.inform(none);
  else printTable(terminal, columns, items.map(cells));
}
