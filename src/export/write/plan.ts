import type pg from 'pg';
import { type Dataset, datasets, type ExportFormat, type FileDataset } from '../../domain/export.ts';
import type { FileStore } from '../../files/file-store.ts';
import { databaseOn } from '../../postgres/database.ts';
import type { Filter } from '../filter.ts';
import { allEvents, findLeftEvents, storedEvents } from './archived-events.ts';
import { type CopyFormat, type CopySelect, compileForCopy, copyOut } from './copy-out.ts';
import { formatWriters } from './formats.ts';
import { hasContentHash, type RowBlock, type RowText, rowBlocks } from './row-blocks.ts';
import { selectStreamEvents, selectStreamProfiles, streamBlocks } from './stream.ts';

/** A COPY to read. */
export interface Reading {
  readonly select: CopySelect;
  /** The events outside of the database that must be read too, and their number. */
  readonly pieces: { selects(): AsyncIterable<CopySelect>; readonly rows: number } | null;
}

/** The files of one kind of rows, ready to be written. */
export interface FilePlan {
  readonly dataset: FileDataset;
  readonly format: ExportFormat;
  /** The beginning of every file. */
  readonly header: Buffer;
  /** For the estimate. */
  readonly readings: readonly Reading[];
  /**
   * The rows as COPY sends them, and in the end how many PostgreSQL says there were. `most`: only the first of them, and of
   * events only what is in the database.
   */
  blocks(client: pg.PoolClient, signal: AbortSignal, most?: number): AsyncGenerator<RowBlock, number>;
  /** Returns where those are values: what makes text of them. */
  readonly toText: ((block: RowBlock) => RowBlock) | null;
  /** The text of which there is a content hash; null: there is none. */
  readonly content: RowText | null;
}

/** Plans the reading in the order of the files. The client must be in the transaction that reads. */
export async function planFiles(
  client: pg.PoolClient,
  files: FileStore,
  filter: Filter,
): Promise<readonly FilePlan[]> {
  if (filter.request.layout === 'stream') return [await planStream(client, files, filter)];
  const plans: FilePlan[] = [];
  for (const dataset of datasets) {
    if (filter.request.datasets.includes(dataset))
      plans.push(await planDataset(client, files, dataset, filter));
  }
  return plans;
}

async function planDataset(
  client: pg.PoolClient,
  files: FileStore,
  dataset: Dataset,
  filter: Filter,
): Promise<FilePlan> {
  const { format } = filter.request;
  const { header, selectFrom } = await formatWriters[format].selectDataset(
    databaseOn(client),
    dataset,
    filter,
  );
  const select = (from: Filter) => compileForCopy(selectFrom(from));
  return { ...planRows(dataset, format, await planReading(client, files, dataset, filter, select)), header };
}

/** Returns the plan of one dataset whose rows one reading brings. */
export function planRows(dataset: Dataset, format: ExportFormat, reading: Reading): FilePlan {
  const { copied, text, toText } = formatWriters[format];
  return {
    dataset,
    format,
    header: Buffer.alloc(0),
    readings: [reading],
    blocks: (client, signal, most) =>
      rowBlocks(copyAll(client, firstOf(reading, most), copied, signal), text),
    toText: toText(dataset),
    content: hasContentHash(dataset) ? text : null,
  };
}

async function planStream(client: pg.PoolClient, files: FileStore, filter: Filter): Promise<FilePlan> {
  const { request } = filter;
  const profiles = selectStreamProfiles(filter);
  const about = profiles === null ? null : { select: profiles, pieces: null };
  const events = request.datasets.includes('events')
    ? await planReading(client, files, 'events', filter, selectStreamEvents)
    : null;
  const writer = formatWriters[request.format];
  return {
    dataset: 'stream',
    format: request.format,
    header: writer.streamHeader(request),
    readings: [about, events].filter((reading) => reading !== null),
    blocks: (copying, signal, most) =>
      streamBlocks(
        files,
        about && copyAll(copying, firstOf(about, most), 'lines', signal),
        events && copyAll(copying, firstOf(events, most), 'lines', signal),
      ),
    toText: writer.streamToText(request),
    content: null,
  };
}

/** Events may have left the database since. */
async function planReading(
  client: pg.PoolClient,
  files: FileStore,
  dataset: Dataset,
  filter: Filter,
  select: (filter: Filter) => CopySelect,
): Promise<Reading> {
  if (dataset !== 'events') return { select: select(filter), pieces: null };
  const left = await findLeftEvents(client, filter);
  if (left.archives.length === 0 && left.tables.length === 0) return { select: select(filter), pieces: null };
  async function* selects(): AsyncGenerator<CopySelect> {
    for await (const events of allEvents(files, filter, left)) yield select({ ...filter, events });
  }
  return {
    select: select({ ...filter, events: storedEvents(filter, left) }),
    pieces: { selects, rows: left.archives.reduce((sum, { rows }) => sum + rows, 0) },
  };
}

function firstOf(reading: Reading, most: number | undefined): Reading {
  if (most === undefined) return reading;
  const { text, parameters } = reading.select;
  return { select: { text: `${text} limit ${most}`, parameters }, pieces: null };
}

/** Each piece ends with a whole row. */
async function* copyAll(
  client: pg.PoolClient,
  { select, pieces }: Reading,
  format: CopyFormat,
  signal: AbortSignal,
): AsyncGenerator<Buffer, number> {
  if (pieces === null) return yield* copyOut(client, select, format, signal);
  let rows = 0;
  for await (const piece of pieces.selects()) rows += yield* copyOut(client, piece, format, signal);
  return rows;
}
