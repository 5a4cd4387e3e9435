/** The terminal: where results go, and how times, texts and tables are written for a person. */
import { styleText } from 'node:util';
import { formatCount } from '../domain/wording.ts';

type Style = Parameters<typeof styleText>[0];

/** A terminal takes results on standard output and everything else on standard error. */
export interface Terminal {
  /** Prints a line of the result. */
  print(text: string): void;
  /** Writes part of the result as it is, without a line end. Resolves when the reader can take more. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Prints a line beside the result: progress, hints, complaints. */
  inform(text: string): void;
  json(value: unknown): void;
  /** Colours the text if standard output can show it. */
  style(style: Style, text: string): string;
  /** True if a person looks at standard error now, so that a moving line makes sense there. */
  readonly live: boolean;
  /** True if nobody reads the result any more (`| head`): long output may end. */
  readonly closed: boolean;
}

export function createTerminal(processEnv: Readonly<Record<string, string | undefined>>): Terminal {
  const { stdout, stderr } = process;
  const dumb = processEnv['TERM'] === 'dumb';
  const colour = stdout.isTTY === true && !dumb && (processEnv['NO_COLOR'] ?? '') === '';
  const gone = new Set<NodeJS.WriteStream>();
  for (const stream of [stdout, stderr]) {
    // A reader that went away is no error of ours; work that is under way goes on.
    stream.on('error', (error: NodeJS.ErrnoException) => {
      gone.add(stream);
      if (error.code !== 'EPIPE') process.exitCode = 1;
    });
  }
  const put = (stream: NodeJS.WriteStream, text: string | Uint8Array): boolean =>
    gone.has(stream) || stream.write(text);
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
      return gone.has(stdout);
    },
  };
}

/** Resolves when more can be written, or when nobody is there to read it. */
function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('error', done).off('close', done);
      resolve();
    };
    stream.on('drain', done).on('error', done).on('close', done);
  });
}

/** Returns `2026-11-20 03:00:00Z`, or a dash. */
export function formatTime(at: Date | null): string {
  return at === null ? '–' : `${at.toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

/** Returns text of a file or a caller without control characters, which would move the cursor, cut to a length. */
export function printable(text: string, longest: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) =>
    c === '\n' ? '⏎' : c === '\t' ? ' ' : '�',
  );
  return clean.length > longest ? `${clean.slice(0, longest - 1)}…` : clean;
}

/** A cell is shown as a person reads it; null and an unknown time are a dash. */
type Cell = string | number | Date | null;

/** The columns of a table by title, each with its cell of an item. `>rows` is aligned to the right. */
export type Columns<T> = Readonly<Record<string, (item: T) => Cell>>;

const gap = '  ';
const longestCell = 200;

function show(cell: Cell): string {
  if (typeof cell === 'number') return formatCount(cell);
  return typeof cell === 'string' ? printable(cell, longestCell) : formatTime(cell);
}

/** Returns the lines of a table, as wide as its cells need. */
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

/** Prints a list as every command shows it: an array for scripts, a table for a person, `none` instead of an empty table. */
export function printList<T>(
  { terminal, json }: { readonly terminal: Terminal; readonly json: boolean },
  items: readonly T[],
  { columns, render, none }: { columns: Columns<T>; render: (item: T) => unknown; none: string },
): void {
  if (json) terminal.json(items.map(render));
  else if (items.length === 0) terminal.inform(none);
  else printTable(terminal, columns, items);
}

/** Prints a line for each title that has a text or a time. */
export function printFields(
  terminal: Pick<Terminal, 'print'>,
  fields: Readonly<Record<string, string | Date | null | undefined | false>>,
): void {
  const width = Math.max(10, ...Object.keys(fields).map((title) => title.length));
  for (const [title, value] of Object.entries(fields)) {
    if (value === null || value === undefined || value === false) continue;
    terminal.print(`${title.padEnd(width)}  ${typeof value === 'string' ? value : value.toISOString()}`);
  }
}
