import { styleText } from 'node:util';
import { formatBytes, formatCount, formatDuration } from '../base/wording.ts';

/** Results go to standard output, everything else to standard error. */
export interface Terminal {
  print(text: string): void;
  /** Resolves when the reader can accept more bytes. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Progress, hints or complaints. */
  inform(text: string): void;
  json(value: unknown): void;
  style(style: Parameters<typeof styleText>[0], text: string): string;
  /** True if lines of standard error can be rewritten. */
  readonly live: boolean;
  /** True if the reader has closed the pipe (as `| head` does). */
  readonly closed: boolean;
}

export function createTerminal(processEnv: Readonly<Record<string, string | undefined>>): Terminal {
  const { stdout, stderr } = process;
  const dumb = processEnv['TERM'] === 'dumb';
  const colour = stdout.isTTY === true && !dumb && (processEnv['NO_COLOR'] ?? '') === '';
  const closedStreams = new Set<NodeJS.WriteStream>();
  for (const stream of [stdout, stderr]) {
    // The command continues.
    stream.on('error', (error: NodeJS.ErrnoException) => {
      closedStreams.add(stream);
      if (error.code !== 'EPIPE') process.exitCode = 1;
    });
  }
  const put = (stream: NodeJS.WriteStream, text: string | Uint8Array): boolean =>
    closedStreams.has(stream) || stream.write(text);
  return {
    print: (text) => void put(stdout, `${text}\n`),
    async write(bytes) {
      if (!put(stdout, bytes)) await drained(stdout);
    },
    inform: (text) => void put(stderr, `${text}\n`),
    json: (value) => void put(stdout, `${JSON.stringify(value, null, stdout.isTTY ? 2 : undefined)}\n`),
    style: (style, text) => (colour ? styleText(style, text) : text),
    live: stderr.isTTY === true && !dumb,
    get closed() {
      return closedStreams.has(stdout);
    },
  };
}

function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('error', done).off('close', done);
      resolve();
    };
    stream.on('drain', done).on('error', done).on('close', done);
  });
}

/** Writes a time as `2026-11-20 03:00:00Z`, and `null` as a dash. */
export function formatTime(at: Date | null): string {
  return at === null ? '–' : `${at.toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** Control characters would move the cursor. */
export function printable(text: string, longest: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) => replacements[c] ?? '�');
  return clean.length > longest ? `${clean.slice(0, longest - 1)}…` : clean;
}

const replacements: Readonly<Record<string, string>> = { '\n': '⏎', '\t': ' ' };

/** Times are shown in UTC, and `null` as a dash. */
type Cell = string | number | Date | null;

/**
 * The columns of a table, by their titles. A title that begins with `>` aligns its column to the
 * right.
 */
export type Columns<T> = Readonly<Record<string, (item: T) => Cell>>;

const gap = '  ';
const longestCell = 500;

function show(cell: Cell): string {
  if (typeof cell === 'number') return formatCount(cell);
  return typeof cell === 'string' ? printable(cell, longestCell) : formatTime(cell);
}

export function renderTable<T>(columns: Columns<T>, items: readonly T[]): string[] {
  const titles = Object.keys(columns).map((title) => title.replace(/^>/, ''));
  const rows = items.map((item) => Object.values(columns).map((cell) => show(cell(item))));
  const isRight = Object.keys(columns).map((title) => title.startsWith('>'));
  const widths = titles.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => (isRight[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join(gap)
      .trimEnd();
  return [line(titles), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)];
}

export function printTable<T>(
  terminal: Pick<Terminal, 'print'>,
  columns: Columns<T>,
  items: readonly T[],
): void {
  for (const line of renderTable(columns, items)) terminal.print(line);
}

export function printList(
  { terminal, json }: Output,
  records: readonly object[],
  { columns, none }: { readonly columns: readonly string[]; readonly none: string },
): void {
  if (json) terminal.json(records);
  else if (records.length === 0) terminal.inform(none);
  else printRecords(terminal, records, columns);
}

interface Output {
  readonly terminal: Terminal;
  readonly json: boolean;
}

export function printDone({ terminal, json }: Output, record: unknown, sentence: string): void {
  if (json) terminal.json(record);
  else terminal.print(sentence);
}

export function printRecord({ terminal, json }: Output, record: object): void {
  if (json) {
    terminal.json(record);
    return;
  }
  // The version of the schema is left out, because only programs need it.
  const filled = Object.entries(record).filter(([name, value]) => name !== 'schema' && !isEmpty(value));
  printFields(
    terminal,
    Object.fromEntries(
      filled.flatMap(([name, value]) =>
        isRecordList(value) ? [] : [[titleOf(name), formatValue(name, value)]],
      ),
    ),
  );
  for (const [name, value] of filled) {
    if (!isRecordList(value)) continue;
    terminal.print('');
    terminal.print(terminal.style('bold', titleOf(name)));
    printRecords(terminal, value);
  }
}

/**
 * Prints a table of the records. Its columns are the fields in `names` or, by default, all fields
 * with a value.
 */
export function printRecords(
  terminal: Pick<Terminal, 'print'>,
  records: readonly object[],
  names?: readonly string[],
): void {
  const rows = records as readonly Readonly<Record<string, unknown>>[];
  const all = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const shown = names ?? all.filter((name) => rows.some((row) => !isEmpty(row[name])));
  const isNumber = (name: string): boolean =>
    rows.every((row) => row[name] == null || typeof row[name] === 'number');
  const columns = shown.map((name) => [
    `${isNumber(name) ? '>' : ''}${titleOf(name)}`,
    (row: Readonly<Record<string, unknown>>) =>
      printable(formatValue(name, row[name]), sentences.test(name) ? longestCell : longestColumn),
  ]);
  printTable(terminal, Object.fromEntries(columns) as Columns<(typeof rows)[number]>, rows);
}

const longestColumn = 80;
/** Fields that contain sentences. They may be longer than other fields. */
const sentences = /^(says|message|error|last_error|disabled_reason)$/;
const titleOf = (name: string): string => name.replace(/_seconds$/, '').replaceAll('_', ' ');

function isRecordList(value: unknown): value is readonly object[] {
  return Array.isArray(value) && typeof value[0] === 'object';
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'object') return value === null || Object.values(value).every(isEmpty);
  return value === undefined || value === '' || value === false;
}

/** The field's name decides, for example, whether a number is a size or a duration. */
function formatValue(name: string, value: unknown): string {
  if (value == null) return '–';
  if (typeof value === 'number') {
    if (/(^|_|^p)id$/.test(name)) return String(value);
    if (name === 'progress') return `${Math.floor(value * 100)} %`;
    if (/bytes$|_size$/.test(name)) return formatBytes(value);
    return /seconds$|elapsed_time$/.test(name) ? formatDuration(value) : formatCount(value);
  }
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map((item) => formatValue(name, item)).join(', ');
  if (typeof value === 'object')
    return Object.entries(value)
      .filter(([, item]) => !isEmpty(item))
      .map(([key, item]) => `${printable(titleOf(key), 40)}: ${formatValue(key, item)}`)
      .join(', ');
  const text = String(value);
  return instant.test(text) ? formatTime(new Date(text)) : printable(text, longestCell);
}

const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;

export function printFields(
  terminal: Pick<Terminal, 'print'>,
  fields: Readonly<Record<string, string | null | undefined | false>>,
): void {
  const width = Math.max(10, ...Object.keys(fields).map((title) => title.length));
  for (const [title, value] of Object.entries(fields))
    if (value) terminal.print(`${title.padEnd(width)}  ${value}`);
}
