import type { ExportRequest } from '../../domain/export.ts';
import { defuse } from '../../domain/formula.ts';
import { instantOfMicros } from '../../domain/instant.ts';
import type { FileRef, FileStore } from '../../files/file-store.ts';
import { exportHeader } from '../../formats/csv-text.ts';
import type { Filter } from '../filter.ts';
import { mergeByTime } from './archived-events.ts';
import { type CopySelect, compileForCopy } from './copy-out.ts';
import { columnsOf, pageOf, profilesByTime, selectValuesFrom } from './page.ts';
import { ndjsonText, type RowBlock, rowBlocks } from './row-blocks.ts';
import { rewriteRows } from './row-values.ts';

/*
 * The stream: rows of all kinds in order of time. A profile stands at the moment at which it last changed, which is what
 * the range of an export is about. PostgreSQL sorts the profiles, within its work_mem and then on disk; events come in
 * order from their index. COPY holds the connection, so that the two cannot be read at once: the profiles are kept aside
 * in the file store, as they came, and merged with the events as those come.
 */

const columns = columnsOf('stream');

/** Returns null if the request is not about profiles. */
export function selectStreamProfiles(filter: Filter): CopySelect | null {
  const page = profilesByTime(filter);
  return page === null ? null : compileForCopy(selectValuesFrom(page, 'stream', 'stream', filter));
}

export function selectStreamEvents(filter: Filter): CopySelect {
  return compileForCopy(selectValuesFrom(pageOf('events', filter), 'events', 'stream', filter));
}

type Copied = AsyncIterable<Buffer, number>;

/** The rows of both in order of time, and in the end how many PostgreSQL says there were. */
export async function* streamBlocks(
  files: FileStore,
  profiles: Copied | null,
  events: Copied | null,
): AsyncGenerator<RowBlock, number> {
  if (profiles === null || events === null) {
    const only = profiles ?? events;
    return only === null ? 0 : yield* rowBlocks(only, ndjsonText);
  }
  const aside = await keepAside(files, profiles);
  try {
    const kept = rowBlocks(readAside(files, aside), ndjsonText);
    return yield* mergeByTime(kept, rowBlocks(events, ndjsonText));
  } finally {
    await files.remove(aside.ref);
  }
}

interface Aside {
  readonly ref: FileRef;
  readonly rows: number;
}

async function keepAside(files: FileStore, copied: Copied): Promise<Aside> {
  const writer = await files.create();
  const pieces = copied[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      const next = await pieces.next();
      if (next.done === true) {
        isOver = true;
        return { ref: await writer.commit(), rows: next.value };
      }
      await writer.write(next.value);
    }
  } catch (error) {
    if (!isOver) await pieces.return?.(0);
    await writer.discard();
    throw error;
  }
}

async function* readAside(files: FileStore, { ref, rows }: Aside): AsyncGenerator<Buffer, number> {
  yield* files.open(ref) as AsyncIterable<Buffer>;
  return rows;
}

/** Returns the header of a stream as CSV. */
export function streamCsvHeader({ escapeFormulas }: ExportRequest): Buffer {
  const names = columns.map(({ name }) => name);
  return Buffer.from(`${exportHeader(names, escapeFormulas)}\n`);
}

/** Makes the rows of a stream CSV, metadata as one cell of JSON. */
export function streamCsv({ escapeFormulas }: ExportRequest): (block: RowBlock) => RowBlock {
  const cellOf = escapeFormulas ? (cell: string) => quoteCell(defuse(cell)) : quoteCell;
  const rowOf = (values: readonly string[]): string => {
    const cells = columns.map((column, index) => {
      const value = values[index] ?? '';
      if (value === '' || (column.kind === 'json' && value === '{}')) return '';
      if (column.kind === 'instant') return instantOfMicros(BigInt(value));
      return column.kind === 'json' ? quoteCell(value) : cellOf(JSON.parse(value) as string);
    });
    return `${cells.join(',')}\n`;
  };
  return (block) => rewriteRows(block, rowOf);
}

/** Quotes a cell as COPY does. */
function quoteCell(cell: string): string {
  return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
