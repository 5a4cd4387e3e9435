/*
 * Writing an export: all its rows from one snapshot, by COPY, split into files with a manifest. `filter.ts`
 * beside this folder says which rows; `formats.ts` what they look
 * like in each format, and `stream.ts` how rows of all kinds become one file. Memory stays flat however many rows there are.
 */
import type pg from 'pg';
import type { Logger } from 'pino';
import { Fault } from '../../domain/errors.ts';
import {
  type Dataset,
  datasets,
  type ExportFile,
  type ExportFormat,
  type ExportRequest,
  type FileDataset,
} from '../../domain/export.ts';
import type { FileStore } from '../../files/file-store.ts';
import { type CopySelect, compileForCopy, copyOut, estimateRows } from '../../postgres/copy-out.ts';
import { databaseOn } from '../../postgres/database.ts';
import { inSnapshot, type Snapshot } from '../../postgres/session.ts';
import type { Filter } from '../filter.ts';
import {
  createManifest,
  type DatasetSummary,
  type JobFacts,
  type ManifestFacts,
  manifestName,
} from '../manifest.ts';
import { allEvents, findLeftEvents, type LeftEvents, storedEvents } from './archived-events.ts';
import { AttemptFiles } from './attempt-files.ts';
import { ContentHash } from './content-hash.ts';
import { formatWriters } from './formats.ts';
import { lakeWriters } from './lake-rows.ts';
import { selectValues } from './page.ts';
import { ndjsonText, type RowBlock, type RowText, rowBlocks } from './rows.ts';
import type { LakeTarget } from './split-files.ts';
import { selectStreamEvents, selectStreamProfiles, streamBlocks } from './stream.ts';

export interface WriteExportContext {
  readonly pool: pg.Pool;
  readonly files: FileStore;
  readonly log: Logger;
}

export interface SnapshotFacts {
  /** The planner's estimate, of all datasets together. */
  readonly rowsExpected: number;
  /** Whoever ends this session ends the export's reading. */
  readonly backendPid: number;
}

export interface WriteExportOptions extends Filter, WriteOptions {
  readonly manifest: JobFacts;
  /** The name of its PostgreSQL session. */
  readonly sessionName: string;
  /** Called once, before the first row is read. */
  onSnapshot(facts: SnapshotFacts): void | Promise<void>;
}

export interface WrittenExport {
  readonly snapshotAt: Date;
  readonly cursor: string;
  /** The manifest last. */
  readonly files: readonly ExportFile[];
}

/**
 * Writes all files of an export from one snapshot, and the manifest once they are complete. Memory does not grow with
 * the data. If it fails or is aborted, no file is left, and nothing goes on in Postgres.
 * @throws what Postgres and the store throw; the signal's reason.
 */
export async function writeExport(
  context: WriteExportContext,
  options: WriteExportOptions,
): Promise<WrittenExport> {
  const files = new AttemptFiles(context.files);
  try {
    const facts = await inSnapshot(
      context,
      { name: options.sessionName, signal: options.signal },
      (snapshot) => readAll(context, snapshot, files, options),
    );
    await writeManifest(files, options, facts);
    options.signal.throwIfAborted();
    return { snapshotAt: facts.snapshotAt, cursor: facts.cursor, files: files.files };
  } catch (error) {
    await files.discard(context.log);
    throw error;
  }
}

async function readAll(
  context: WriteExportContext,
  snapshot: Snapshot,
  files: AttemptFiles,
  options: WriteExportOptions,
): Promise<ManifestFacts> {
  const plans = await planFiles(snapshot.client, context.files, options);
  let rowsExpected = 0;
  for (const { select, pieces } of plans.flatMap(({ readings }) => readings)) {
    rowsExpected += (await estimateRows(snapshot.client, select)) + (pieces?.rows ?? 0);
  }
  await options.onSnapshot({ rowsExpected, backendPid: snapshot.backendPid });
  const datasets = await writeAll(snapshot, files, plans, options);
  return { ...options.manifest, snapshotAt: snapshot.at, cursor: snapshot.cursor, datasets };
}

async function writeAll(
  snapshot: Snapshot,
  files: AttemptFiles,
  plans: readonly FilePlan[],
  options: WriteExportOptions,
): Promise<DatasetSummary[]> {
  const summaries: DatasetSummary[] = [];
  const before = { rows: 0, bytes: 0 };
  for (const plan of plans) {
    let bytesOfThis = 0;
    const summary = await writeFiles(snapshot, files, plan, {
      ...options,
      onProgress: (rows, bytes) => {
        bytesOfThis = bytes;
        options.onProgress(before.rows + rows, before.bytes + bytes);
      },
    });
    before.rows += summary.rows;
    before.bytes += bytesOfThis;
    summaries.push(summary);
  }
  return summaries;
}

async function writeManifest(
  files: AttemptFiles,
  { request }: WriteExportOptions,
  facts: ManifestFacts,
): Promise<void> {
  const manifest = createManifest(facts, request, files.files);
  const writer = await files.create('none');
  await writer.write(Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`));
  await files.finish(writer, { filename: manifestName, dataset: 'manifest', rows: 0 });
}

interface WriteOptions {
  readonly request: ExportRequest;
  readonly lake?: LakeTarget;
  readonly splitBytes: number;
  readonly signal: AbortSignal;
  /** Told of rows and stored bytes as they become more. */
  onProgress(rows: number, bytes: number): void;
}

/** COPY → rows → files. The next rows are asked for when the last are on their way to the store. */
export async function writeFiles(
  snapshot: Snapshot,
  files: AttemptFiles,
  plan: FilePlan,
  options: WriteOptions,
): Promise<DatasetSummary> {
  const { dataset, header, toText } = plan;
  const sink = formatWriters[plan.format].createSink(files, { ...options, dataset, header });
  const content = plan.content === null ? null : new ContentHash(dataset, plan.content);
  if (header.length > 0) content?.addHeader(header);
  const blocks = plan.blocks(snapshot.client, options.signal);
  let rows = 0;
  let next = await blocks.next();
  try {
    for (; next.done !== true; next = await blocks.next()) {
      const block = next.value;
      if (block.packed !== undefined) {
        const { group, text } = block.packed;
        content?.addGroup(group, () => [text()]);
        await sink.add(block);
        rows += group.rows;
        options.onProgress(rows, sink.bytes);
        continue;
      }
      const isText = toText === null || block.isText === true || (content === null && sink.takesValues);
      const text = isText ? block : toText(block);
      content?.add(text);
      await sink.add(sink.takesValues ? block : text);
      rows += block.ends.length;
      options.onProgress(rows, sink.bytes);
    }
  } finally {
    if (next.done !== true) await blocks.return(0);
  }
  if (next.value !== rows) throw new Fault(`Postgres sent ${next.value} ${dataset}, ${rows} were written`);
  await sink.end();
  options.onProgress(rows, sink.bytes);
  return { dataset, rows, contentSha256: content?.digest() ?? null };
}

export interface Reading {
  readonly select: CopySelect;
  /** All rows, as values, and the most that there can be in the lake; set if events in the lake must be read too. */
  readonly pieces: {
    blocks(client: pg.PoolClient, signal: AbortSignal): AsyncGenerator<RowBlock, number>;
    readonly rows: number;
  } | null;
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
  const { request } = filter;
  const plans: FilePlan[] = [];
  if (request.layout === 'stream') plans.push(await planStream(client, files, filter));
  else
    for (const dataset of datasets) {
      if (request.datasets.includes(dataset)) plans.push(await planDataset(client, files, dataset, filter));
    }
  return plans;
}

async function planDataset(
  client: pg.PoolClient,
  files: FileStore,
  dataset: Dataset,
  filter: Filter,
): Promise<FilePlan> {
  const { request } = filter;
  const { format } = request;
  const { header, selectFrom } = await formatWriters[format].selectDataset(
    databaseOn(client),
    dataset,
    filter,
  );
  const left = dataset === 'events' ? await findLeftEvents(client, filter) : null;
  const select = (from: Filter) => compileForCopy(selectFrom(from));
  if (left !== null && left.data.length > 0) {
    const values = (from: Filter) => compileForCopy(selectValues('events', from));
    const plan = planRows(dataset, request, planEvents(files, 'events', filter, left, values));
    return { ...plan, header };
  }
  const reading = { select: select(withStored(filter, left)), pieces: null };
  // A row that says a profile was removed has no times that the hash could leave out.
  return { ...planRows(dataset, request, reading), header, ...(request.includeRemoved && { content: null }) };
}

/** Returns the plan of one dataset whose rows one reading brings. */
export function planRows(dataset: Dataset, request: ExportRequest, reading: Reading): FilePlan {
  const { format } = request;
  const { copied, text, toText } = formatWriters[format];
  const isOfValues = copied === 'lines' || reading.pieces !== null;
  return {
    dataset,
    format,
    header: Buffer.alloc(0),
    readings: [reading],
    blocks: (client, signal, most) =>
      isOfValues
        ? readValues(client, reading, signal, most)
        : rowBlocks(copyOut(client, firstOf(reading, most).select, copied, signal), text),
    toText: isOfValues ? toText(dataset, request) : null,
    content: text,
  };
}

async function planStream(client: pg.PoolClient, files: FileStore, filter: Filter): Promise<FilePlan> {
  const { request } = filter;
  const profiles = selectStreamProfiles(filter);
  const about = profiles === null ? null : { select: profiles, pieces: null };
  const events = request.datasets.includes('events')
    ? planEvents(files, 'stream', filter, await findLeftEvents(client, filter), selectStreamEvents)
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
        about && copyOut(copying, firstOf(about, most).select, 'lines', signal),
        events && readValues(copying, events, signal, most),
      ),
    toText: writer.toText('stream', request),
    // Rows are ordered by when profiles changed, which a load does not bring back.
    content: null,
  };
}

/** Events on their way into the lake are not in `sluice.events` any more. */
function withStored(filter: Filter, left: LeftEvents | null): Filter {
  if (left === null || left.tables.length === 0) return filter;
  return { ...filter, events: storedEvents(filter, left.tables) };
}

/** Plans the reading of events as values, in the columns of `dataset`. */
function planEvents(
  files: FileStore,
  dataset: 'events' | 'stream',
  filter: Filter,
  left: LeftEvents,
  select: (filter: Filter) => CopySelect,
): Reading {
  const stored = select(withStored(filter, left));
  if (left.data.length === 0) return { select: stored, pieces: null };
  const writers = lakeWriters(dataset, filter);
  return {
    select: stored,
    pieces: {
      blocks: (client, signal) =>
        allEvents({ files, client }, filter, left, {
          ...writers,
          signal,
          copy: (events) => {
            const piece = { select: select({ ...filter, events }), pieces: null };
            return readValues(client, piece, signal);
          },
        }),
      rows: left.data.reduce((sum, { rows }) => sum + rows, 0),
    },
  };
}

function firstOf(reading: Reading, most: number | undefined): Reading {
  if (most === undefined) return reading;
  const { text, parameters } = reading.select;
  return { select: { text: `${text} limit ${most}`, parameters }, pieces: null };
}

function readValues(
  client: pg.PoolClient,
  reading: Reading,
  signal: AbortSignal,
  most?: number,
): AsyncGenerator<RowBlock, number> {
  const { select, pieces } = firstOf(reading, most);
  return pieces?.blocks(client, signal) ?? rowBlocks(copyOut(client, select, 'lines', signal), ndjsonText);
}
