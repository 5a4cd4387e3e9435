/*
 * The files of the Pollock benchmark (Vitagliano et al., VLDB 2023): a table of 83 records and nine
 * columns, undamaged and damaged in 2 289 ways. We invented a table like the original: it has inch
 * marks, apostrophes and an empty last column, and few of its cells are quoted.
 */

export type Row = readonly string[];

export interface PollutedFile {
  readonly name: string;
  /**
   * Number of real files (of 3 712) that have this fault, divided by the number of our files that
   * have it.
   */
  readonly weight: number;
  readonly text: string;
  /** Header and rows that a program should load. If the file has no header, `header` is empty. */
  readonly header: Row;
  readonly rows: readonly Row[];
  /** Dialect of the file, for programs that require it as parameters. */
  readonly written: Written;
}

interface Written {
  readonly delimiter: string;
  readonly quote: string;
  readonly escape: string;
  readonly end: string;
}

const columns: Row = [
  'DATE',
  'TIME',
  'Qty',
  'PRODUCTID',
  'Price',
  'ProductType',
  'ProductDescription',
  'URL',
  'Comments',
];
export const idColumn = columns.indexOf('URL');
const quotedName = columns.indexOf('ProductDescription');
const recordCount = 83;

const plain: Written = { delimiter: ',', quote: '"', escape: '"', end: '\r\n' };
const goods = [
  "Men's Boots",
  'Trail Shoes',
  "Kids' Hat",
  'Linen Shirt, Slim',
  'Field Watch',
  'Wool Coat',
  "9' Leader",
];
const praise = [
  'Light and quick enough to keep feet from feeling weighed down.',
  'Great grip, extra breathability and a relaxed fit.',
  'Thickly knit from soft lambswool, even when wet.',
  "You'll want to wear them beyond the trail, and so will the kids'.",
  'Made to hold up heavy pants without stretching.',
];

const table: readonly Row[] = Array.from({ length: recordCount }, (_, n) => {
  const number = String(n).padStart(3, '0');
  const inches = n % 14 === 9 ? `Table, Round ${40 + (n % 10)}"` : null;
  const length = n === 11 ? `A light feel in our 8\\'9" rod, made for her.` : null;
  return [
    `${String(1 + (n % 28)).padStart(2, '0')}/0${1 + (n % 9)}/2018`,
    `${String(n % 24).padStart(2, '0')}:${n % 2 === 0 ? '15' : '45'}`,
    String((n * 7) % 31),
    `MG-${1000 + n * 97}`,
    `$${((n * 131) % 9900) / 100}`,
    inches ?? goods[n % goods.length] ?? '',
    length ?? praise[n % praise.length] ?? '',
    `https://www.example.com/product/${number}.html`,
    '',
  ];
});

/** Quotes surround cells with a comma or a quote. */
function cellsOf(row: Row, isHeader: boolean, { quote, escape: mark }: Written = plain): string[] {
  return row.map((cell, index) => {
    if (!/[",]/.test(cell) && !(isHeader && index === quotedName)) return cell;
    return quote + cell.replaceAll('"', `${quote === '"' ? mark : ''}"`) + quote;
  });
}

type Line = readonly string[];

const lines: readonly Line[] = [columns, ...table].map((row, index) => cellsOf(row, index === 0));

function join(all: readonly (Line | string)[], { delimiter, end }: Written = plain): string {
  return all.map((line) => (typeof line === 'string' ? line : line.join(delimiter)) + end).join('');
}

function polluted(
  name: string,
  weight: number,
  text: string,
  changes: Partial<PollutedFile> = {},
): PollutedFile {
  return { name, weight, text, header: columns, rows: table, written: plain, ...changes };
}

function rewritten(name: string, weight: number, changes: Partial<Written>): PollutedFile {
  const written = { ...plain, ...changes };
  const all = [columns, ...table].map((row, index) => cellsOf(row, index === 0, written));
  return polluted(name, weight, join(all, written), { written });
}

function withLine(at: number, line: Line | string): string {
  return join(lines.with(at, line as Line));
}

function* damagedLines(at: number): Generator<PollutedFile> {
  const line = lines[at] ?? [];
  const index = at - 1;
  for (const [column, cell] of line.entries()) {
    const more = line.toSpliced(column, 0, '');
    yield polluted(`row_more_sep_row${at}_col${column}`, 260 / 707, withLine(at, more));
    if (column > 0) {
      const less = line.toSpliced(column - 1, 2, `${line[column - 1]}${cell}`);
      yield polluted(`row_less_sep_row${at}_col${column}`, 260 / 707, withLine(at, less));
    }
    const text = withLine(at, line.with(column, cell.startsWith('"') ? `""${cell.slice(1)}` : `"${cell}`));
    const quoted = (row: Row): Row => row.with(column, `"${row[column]}`);
    const changes =
      at === 0 ? { header: quoted(columns) } : { rows: table.with(index, quoted(table[index] ?? [])) };
    yield polluted(`row_extra_quote${at}_col${column}`, 1 / 108, text, changes);
  }
  yield polluted(`row_field_delimiter_${at}_0x20`, 1 / 7, withLine(at, line.join(' ')));
}

export function* pollutedFiles(): Generator<PollutedFile> {
  const whole = join(lines);
  yield polluted('source', 1, whole);
  yield polluted('file_no_payload', 15, '', { header: [], rows: [] });
  yield polluted('file_no_trailing_newline', 184, whole.slice(0, -2));
  yield polluted('file_double_trailing_newline', 5, `${whole}\r\n`);
  yield polluted('file_no_header', 470, join(lines.slice(1)), { header: [] });
  for (const count of [2, 3]) {
    const heads = Array.from({ length: count }, () => lines[0] ?? []);
    const header = columns.map((name) => Array.from({ length: count }, () => name).join(' '));
    yield polluted(`file_header_multirow_${count}`, 47, join([...heads, ...lines.slice(1)]), { header });
  }
  yield polluted('file_preamble', 282, join([`PREAMBLE${','.repeat(8)}`, ','.repeat(8), ...lines]));
  yield* secondTables();
  yield polluted('file_header_only', 3, join(lines.slice(0, 1)), { rows: [] });
  yield polluted('file_one_data_row', 4, join(lines.slice(0, 2)), { rows: table.slice(0, 1) });
  yield rewritten('file_record_delimiter_0xD', 7, { end: '\r' });
  yield rewritten('file_record_delimiter_0xA', 1691, { end: '\n' });
  yield rewritten('file_field_delimiter_0x9', 4, { delimiter: '\t' });
  yield rewritten('file_field_delimiter_0x3B', 834, { delimiter: ';' });
  yield rewritten('file_field_delimiter_0x20', 4, { delimiter: ' ' });
  yield rewritten('file_field_delimiter_0x2C_0x20', 101, { delimiter: ', ' });
  yield rewritten('file_quotation_char_0x27', 11, { quote: "'", escape: "'" });
  yield rewritten('file_escape_char_0x5C', 1, { escape: '\\' });
  yield rewritten('file_escape_char_0x00', 7, { escape: '' });
  for (const at of lines.keys()) yield* damagedLines(at);
}

/**
 * The records of the second table are expected only if they are as wide as the records of the first
 * table.
 */
function* secondTables(): Generator<PollutedFile> {
  const weight = 188 / 3;
  const second = table.map((row) => row.with(idColumn, `${row[idColumn]}?b`));
  const written = second.map((row) => cellsOf(row, false));
  const below = (line: (line: Line) => Line) => join([...lines, ...written.map(line)]);
  yield polluted(
    'file_multitable_less',
    weight,
    below((line) => line.slice(0, -1)),
  );
  yield polluted(
    'file_multitable_same',
    weight,
    below((line) => line),
    { rows: [...table, ...second] },
  );
  yield polluted(
    'file_multitable_more',
    weight,
    below((line) => [...line, 'x']),
  );
}
