import { everything } from '../../domain/export.ts';
import { type Column, columnsOf } from '../../domain/export-columns.ts';
import type { FileStore } from '../../files/file-store.ts';
import { readGroups } from '../../lake/read-events.ts';
import type { Texts } from '../../lake/row-group.ts';
import type { DataFile } from '../../postgres/stores/lake-files.ts';
import { allHits, type Hits, mapTexts, mergeFiles, textsOf } from './lake-hits.ts';
import { copyBytes, instantWriter, isPlain, type RowBlock, separator } from './rows.ts';

/* Rows of an export made of events of the lake, to the byte as PostgreSQL would send them. */

/** The form of rows: as COPY sends values, or as NDJSON. */
interface RowStyle {
  before(column: Column, index: number): string;
  /** In place of a value that is missing. */
  missing(column: Column, index: number): string;
  readonly end: string;
  instants(): (micros: number, to: Buffer, at: number) => number;
}

const valueRows: RowStyle = {
  before: (_, index) => (index === 0 ? '' : separator),
  missing: (_, index) => (index === 0 ? '' : separator),
  end: '\n',
  instants: () => (micros, to, at) => at + to.write(String(micros), at, 'latin1'),
};

const ndjsonRows: RowStyle = {
  before: ({ name }, index) => `${index === 0 ? '{' : ','}"${name}":`,
  missing: () => '',
  end: '}\n',
  instants: instantWriter,
};

/** Returns what makes rows of values of events of the lake. */
export function eventValues(): (hits: Hits) => RowBlock {
  return rowWriter(columnsOf('events', everything), valueRows);
}

/** Returns what makes NDJSON of events. A block lasts until the next. */
export function eventText(): (hits: Hits) => RowBlock {
  const columns = columnsOf('events', { includeRemoved: false });
  return rowWriter(columns, ndjsonRows, true);
}

type TextFile = Pick<DataFile, 'ref' | 'bytes' | 'rows' | 'firstMicros'>;

/** Reads all events of some files in order, as NDJSON. A block lasts until the next. */
export async function* readText(files: FileStore, data: readonly TextFile[]): AsyncGenerator<RowBlock> {
  const write = eventText();
  async function* open(file: TextFile): AsyncGenerator<Hits> {
    for await (const group of readGroups(files, file)) yield allHits(group);
  }
  for await (const hits of mergeFiles(data, open)) yield { ...write(hits), isText: true };
}

const QUOTE = 0x22;
/** Room for a time. */
const instantBytes = 40;

/** Makes rows of events. `isReused`: a block lasts until the next. */
function rowWriter(columns: readonly Column[], style: RowStyle, isReused = false): (hits: Hits) => RowBlock {
  let bytes = Buffer.alloc(0);
  const parts = columns.map((column, index) => ({
    ...column,
    before: Buffer.from(style.before(column, index)),
    missing: Buffer.from(style.missing(column, index)),
  }));
  const end = Buffer.from(style.end);
  const writeInstant = style.instants();
  return (hits) => {
    const { group, rows } = hits;
    const texts = parts.map(({ name, kind }) => {
      if (kind === 'instant') return null;
      const stored = textsOf(hits, name);
      return kind === 'json' ? stored : escaped(stored);
    });
    let room = rows.length * end.length;
    for (const [index, { before, missing }] of parts.entries()) {
      room +=
        rows.length * Math.max(before.length + 2, missing.length) + lengthOf(texts[index] ?? null, rows);
    }
    if (!isReused || bytes.length < room) bytes = Buffer.allocUnsafeSlow(room);
    const ends: number[] = [];
    let at = 0;
    for (const row of rows) {
      for (let index = 0; index < parts.length; index++) {
        const { before, missing, kind } = parts[index] as (typeof parts)[number];
        const column = texts[index] ?? null;
        const place = column === null ? 0 : (column.places[row] as number);
        if (place === -1) {
          at = copyBytes(missing, 0, missing.length, bytes, at);
          continue;
        }
        at = copyBytes(before, 0, before.length, bytes, at);
        if (column === null) {
          at = writeInstant(group.micros[row] as number, bytes, at);
          continue;
        }
        if (kind === 'text') bytes[at++] = QUOTE;
        at = copyBytes(
          column.memory,
          column.starts[place] as number,
          column.ends[place] as number,
          bytes,
          at,
        );
        if (kind === 'text') bytes[at++] = QUOTE;
      }
      at = copyBytes(end, 0, end.length, bytes, at);
      ends.push(at);
    }
    return { bytes: bytes.subarray(0, at), ends };
  };
}

function lengthOf(texts: Texts | null, rows: Int32Array): number {
  if (texts === null) return rows.length * instantBytes;
  const { starts, ends, places } = texts;
  let length = 0;
  for (const row of rows) {
    const place = places[row] as number;
    if (place !== -1) length += (ends[place] as number) - (starts[place] as number);
  }
  return length;
}

/** Returns the texts as JSON has them between quotes. */
function escaped(texts: Texts): Texts {
  const { memory, starts, ends } = texts;
  const isAllPlain = starts.every((start, place) => isPlain(memory, start, ends[place] as number));
  return isAllPlain ? texts : mapTexts(texts, (text) => JSON.stringify(text).slice(1, -1));
}
