import { MAX_STRAY_QUOTES } from '../../domain/limits.ts';
import type { CsvReadings, Mend } from './mend.ts';

/* Records of CSV whose cells do not come out as many as the columns. Of each reading they must, exactly. */

const QUOTE = '"';
/** In the order of how common they are. */
const delimiters = { semicolon: ';', tab: '\t', pipe: '|', comma: ',' } as const;

const mendsOfDelimiters = Object.entries(delimiters).map(
  ([name, delimiter]): Mend => ({
    name: `${name}-delimiter`,
    sentence: `read with a ${name} between the cells`,
    codes: ['wrong_field_count', 'invalid_quote', 'unclosed_quote'],
    cells: (raw, readings) => {
      const { columns, dialect } = readings;
      if (columns < 2 || dialect.delimiter === delimiter) return null;
      return readings.all(raw)?.length === columns ? null : readings.as(raw, { delimiter });
    },
  }),
);

/**
 * The cells of a line in which quotes may be part of a cell: one that begins with a quote ends with the first that stands before a
 * delimiter; any other is taken as it is. Null where a backslash or a doubled quote leaves in doubt what is meant.
 */
function readInnerQuotes(line: string, delimiter: string): string[] | null {
  if (/\\"|""|[\r\n]/.test(line.replaceAll(`${delimiter}""${delimiter}`, `${delimiter}${delimiter}`)))
    return null;
  const cells: string[] = [];
  for (let at = 0; ; ) {
    const close = line[at] === QUOTE ? closingQuote(line, at + 1, delimiter) : -1;
    if (close >= 0) {
      cells.push(line.slice(at + 1, close));
      at = close + 1;
    } else {
      const end = line.indexOf(delimiter, at);
      cells.push(line.slice(at, end === -1 ? line.length : end));
      at = end === -1 ? line.length : end;
    }
    if (at >= line.length) return cells;
    at++;
  }
}

function closingQuote(line: string, from: number, delimiter: string): number {
  if (line.endsWith(QUOTE) && line.indexOf(QUOTE, from) === line.length - 1) return line.length - 1;
  const at = line.indexOf(QUOTE + delimiter, from);
  return at === -1 && line.endsWith(QUOTE) && line.length > from ? line.length - 1 : at;
}

function innerQuotes(raw: Buffer, { columns, dialect }: CsvReadings): readonly string[] | null {
  const { delimiter, quote, escape: escapes } = dialect;
  if (quote !== QUOTE || escapes !== QUOTE || delimiter.length !== 1) return null;
  const line = raw.toString('utf8');
  const quotes = line.split(QUOTE, 2 * MAX_STRAY_QUOTES + 2).length - 1;
  if (quotes > 2 * MAX_STRAY_QUOTES) return null;
  const cells = readInnerQuotes(line, delimiter);
  return cells?.length === columns ? cells : null;
}

/** Joins cells that were split at a delimiter within a value: exactly those that begin with a blank. */
function joinBlanks(raw: Buffer, readings: CsvReadings): readonly string[] | null {
  const cells = readings.all(raw);
  if (cells === null || cells.length <= readings.columns) return null;
  if (cells.some((cell) => cell.startsWith("'"))) return null;
  const isRest = (cell: string, at: number) => at > 0 && /^ \S/.test(cell);
  if (cells.filter(isRest).length !== cells.length - readings.columns) return null;
  return joined(cells, isRest, readings.dialect.delimiter);
}

/** Digits, a comma that is the delimiter too, and digits: in exactly as many places as there are cells too many. */
function joinDecimals(raw: Buffer, readings: CsvReadings): readonly string[] | null {
  const cells = readings.dialect.delimiter === ',' ? readings.all(raw) : null;
  if (cells === null || cells.length <= readings.columns) return null;
  const isRest = (cell: string, at: number) => /^\d+$/.test(cell) && /^-?\d+$/.test(cells[at - 1] ?? '');
  if (cells.filter(isRest).length !== cells.length - readings.columns) return null;
  return joined(cells, isRest, '.');
}

function joined(
  cells: readonly string[],
  isRest: (cell: string, at: number) => boolean,
  mark: string,
): readonly string[] {
  const result: string[] = [];
  for (const [at, cell] of cells.entries()) {
    if (isRest(cell, at)) result.push(`${result.pop() ?? ''}${mark}${cell}`);
    else result.push(cell);
  }
  return result;
}

function withoutEmpty(raw: Buffer, readings: CsvReadings): readonly string[] | null {
  const cells = readings.all(raw);
  if (cells === null || cells.length <= readings.columns) return null;
  const filled = cells.filter((cell) => cell.trim() !== '');
  const isExact = filled.length === readings.columns;
  return isExact ? filled : null;
}

function filledUp(raw: Buffer, readings: CsvReadings): readonly string[] | null {
  const cells = readings.all(raw);
  if (cells === null || cells.length >= readings.columns) return null;
  return [...cells, ...Array.from({ length: readings.columns - cells.length }, () => '')];
}

function cutOff(raw: Buffer, readings: CsvReadings): readonly string[] | null {
  const cells = readings.all(raw);
  if (cells === null || cells.length <= readings.columns) return null;
  const isEmpty = cells.slice(readings.columns).every((cell) => cell.trim() === '');
  return isEmpty ? cells.slice(0, readings.columns) : null;
}

const mendsOfCounts: readonly Mend[] = [
  { name: 'joined-decimals', sentence: 'read with a decimal comma in it', cells: joinDecimals },
  {
    name: 'joined-blanks',
    sentence: 'read with the delimiters before a blank as part of the values',
    cells: joinBlanks,
  },
  {
    name: 'filled-up',
    sentence: 'filled up with empty cells at the end',
    cells: filledUp,
    isGuess: true as const,
  },
  {
    name: 'shifted-left',
    sentence: 'read without the empty cells in it',
    cells: withoutEmpty,
    isGuess: true as const,
  },
  {
    name: 'cut-off',
    sentence: 'read without the empty cells at its end',
    cells: cutOff,
    isGuess: true as const,
  },
].map((mend) => ({ ...mend, codes: ['wrong_field_count'] }));

export const mendsOfCsv: readonly Mend[] = [
  ...mendsOfDelimiters,
  ...mendsOfCounts,
  {
    name: 'single-quotes',
    sentence: 'read with single quotes around cells',
    codes: ['wrong_field_count', 'invalid_quote', 'unclosed_quote'],
    cells: (raw, readings) => (raw.includes("'") ? readings.as(raw, { quote: "'", escape: "'" }) : null),
  },
  {
    name: 'backslash-quotes',
    sentence: 'read with a backslash before quotes that are part of a value',
    codes: ['invalid_quote', 'unclosed_quote', 'wrong_field_count'],
    cells: (raw, readings) => (raw.includes('\\"') ? readings.as(raw, { quote: QUOTE, escape: '\\' }) : null),
  },
  {
    name: 'inner-quotes',
    sentence: 'read with the quotes inside cells as part of the values',
    codes: ['invalid_quote', 'unclosed_quote'],
    cells: innerQuotes,
  },
  {
    name: 'plain-backslashes',
    sentence: 'read with backslashes as part of the values',
    codes: ['invalid_escape'],
    cells: (raw, readings) => readings.as(raw, { escape: readings.dialect.quote }),
  },
];
