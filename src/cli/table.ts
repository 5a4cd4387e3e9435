export interface Column {
  readonly title: string;
  readonly align?: 'left' | 'right';
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

/** What came from a file or a caller, fit for a terminal: control characters would move its cursor. */
export function printable(text: string, longest: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) =>
    c === '\n' ? '⏎' : c === '\t' ? ' ' : '�',
  );
  return clean.length > longest ? `${clean.slice(0, longest - 1)}…` : clean;
}
