/*
 * Writing an export: all its rows from one snapshot, by COPY, split into files with a manifest. `filter.ts`
 * beside this folder says which rows; `csv.ts`, `page.ts` (NDJSON) and `parquet.ts` what they look like.
 * Memory stays flat however many rows there are.
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
} from '../../domain/export.ts';
import type { FileStore } from '../../files/file-store.ts';
import { databaseOn } from '../../postgres/database.ts';
import type { Filter } from '../filter.ts';
import { allEvents, findLeftEvents, storedEvents } from './archived-events.ts';
import { AttemptFiles } from './attempt-files.ts';
import { type CopyFormat, type CopySelect, compileForCopy, copyOut, estimateRows } from './copy-out.ts';
import { planCsv } from './csv.ts';
import {
  createManifest,
  type DatasetSummary,
  type JobFacts,
  type ManifestFacts,
  manifestName,
} from './manifest.ts';
import { selectNdjson } from './page.ts';
import { ParquetFiles, selectForParquet } from './parquet.ts';
import { ContentHash, hasContentHash, rowBlocks } from './row-blocks.ts';
import { inSnapshot, type Snapshot } from './snapshot.ts';
import { type DatasetSink, SplitFiles } from './split-files.ts';

export interface WriteExportContext {
  readonly pool: pg.Pool;
  readonly files: FileStore;
  readonly log: Logger;
}

export interface SnapshotFacts {
  readonly at: Date;
  /** The planner's estimate, of all datasets together. */
  readonly rowsExpected: number;
  /** Whoever ends this session ends the export's reading. */
  readonly backendPid: number;
}

export interface WriteExportOptions extends Filter, WriteOptions {
  readonly manifest: JobFacts;
  /** What its session is named in Postgres. */
  readonly sessionName: string;
  /** Called once, before the first row is read. */
  onSnapshot(facts: SnapshotFacts): void | Promise<void>;
}

export interface WrittenExport {
  readonly snapshotAt: Date;
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
    return { snapshotAt: facts.snapshotAt, files: files.files };
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
  const plans = await planDatasets(snapshot.client, context.files, options);
  const rowsExpected = await estimateAll(snapshot, plans);
  await options.onSnapshot({ at: snapshot.at, rowsExpected, backendPid: snapshot.backendPid });
  const datasets = await writeDatasets(snapshot, files, plans, options);
  return { ...options.manifest, snapshotAt: snapshot.at, datasets };
}

async function estimateAll({ client }: Snapshot, plans: readonly DatasetPlan[]): Promise<number> {
  let rows = 0;
  for (const { select, pieces } of plans) {
    rows += (await estimateRows(client, select)) + (pieces?.rows ?? 0);
  }
  return rows;
}

async function writeDatasets(
  snapshot: Snapshot,
  files: AttemptFiles,
  plans: readonly DatasetPlan[],
  options: WriteExportOptions,
): Promise<DatasetSummary[]> {
  const summaries: DatasetSummary[] = [];
  const before = { rows: 0, bytes: 0 };
  for (const plan of plans) {
    let bytesOfThis = 0;
    const summary = await writeDataset(snapshot, files, plan, {
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

/** What is to be read, in the order of the files. The client must be in the transaction that reads it. */
export async function planDatasets(
  client: pg.PoolClient,
  files: FileStore,
  filter: Filter,
): Promise<DatasetPlan[]> {
  const plans: DatasetPlan[] = [];
  for (const dataset of datasets) {
    if (!filter.request.datasets.includes(dataset)) continue;
    plans.push(
      dataset === 'events'
        ? await planEvents(client, files, filter)
        : await planDataset(client, dataset, filter),
    );
  }
  return plans;
}

/** Events may have left the database since. */
async function planEvents(client: pg.PoolClient, files: FileStore, filter: Filter): Promise<DatasetPlan> {
  const left = await findLeftEvents(client, filter);
  if (left.archives.length === 0 && left.tables.length === 0) return planDataset(client, 'events', filter);
  const planOf = (events: Filter['events']): Promise<DatasetPlan> =>
    planDataset(client, 'events', { ...filter, ...(events && { events }) });
  async function* selects(): AsyncGenerator<CopySelect> {
    for await (const events of allEvents(files, filter, left)) yield (await planOf(events)).select;
  }
  return {
    ...(await planOf(storedEvents(filter, left))),
    pieces: { selects, rows: left.archives.reduce((sum, { rows }) => sum + rows, 0) },
  };
}

async function planDataset(client: pg.PoolClient, dataset: Dataset, filter: Filter): Promise<DatasetPlan> {
  if (filter.request.format === 'csv') {
    const { select, header } = await planCsv(databaseOn(client), dataset, filter);
    return { dataset, format: 'csv', header, select: compileForCopy(select), pieces: null };
  }
  const { format } = filter.request;
  const select = format === 'parquet' ? selectForParquet(dataset, filter) : selectNdjson(dataset, filter);
  return { dataset, format, header: Buffer.alloc(0), select: compileForCopy(select), pieces: null };
}

/** A dataset, ready to be read. */
interface DatasetPlan {
  readonly dataset: Dataset;
  readonly format: ExportFormat;
  readonly select: CopySelect;
  /** Where some of it is not in the database: what is to be read instead, and how many rows there are elsewhere. */
  readonly pieces: { selects(): AsyncIterable<CopySelect>; readonly rows: number } | null;
  /** What every file begins with. */
  readonly header: Buffer;
}

interface WriteOptions {
  readonly request: ExportRequest;
  readonly splitBytes: number;
  readonly signal: AbortSignal;
  /** Told of rows and stored bytes as they become more. */
  onProgress(rows: number, bytes: number): void;
}

/** COPY → rows → files. The next rows are asked for when the last are on their way to the store. */
export async function writeDataset(
  snapshot: Snapshot,
  files: AttemptFiles,
  plan: DatasetPlan,
  options: WriteOptions,
): Promise<DatasetSummary> {
  const { dataset, format, header } = plan;
  const parts = createSink(files, plan, options);
  const content = format !== 'parquet' && hasContentHash(dataset) ? new ContentHash(format) : null;
  if (header.length > 0) content?.addCsvHeader(header);
  const isCsv = format === 'csv';
  const copied = copyAll(snapshot, plan, isCsv ? 'csv' : 'lines', options.signal);
  const blocks = rowBlocks(copied, isCsv ? 'csv' : 'ndjson');
  let rows = 0;
  let next = await blocks.next();
  try {
    for (; next.done !== true; next = await blocks.next()) {
      content?.add(next.value);
      await parts.add(next.value);
      rows += next.value.ends.length;
      options.onProgress(rows, parts.bytes);
    }
  } finally {
    if (next.done !== true) await blocks.return(0);
  }
  if (next.value !== rows) throw new Fault(`Postgres sent ${next.value} ${dataset}, ${rows} were written`);
  await parts.end();
  options.onProgress(rows, parts.bytes);
  return { dataset, rows, contentSha256: content?.digest() ?? null };
}

/** Each piece ends with a whole row. */
async function* copyAll(
  { client }: Snapshot,
  { select, pieces }: DatasetPlan,
  format: CopyFormat,
  signal: AbortSignal,
): AsyncGenerator<Buffer, number> {
  if (pieces === null) return yield* copyOut(client, select, format, signal);
  let rows = 0;
  for await (const piece of pieces.selects()) rows += yield* copyOut(client, piece, format, signal);
  return rows;
}

function createSink(
  files: AttemptFiles,
  { dataset, format, header }: DatasetPlan,
  { request, splitBytes }: WriteOptions,
): DatasetSink {
  if (format === 'parquet') return new ParquetFiles(files, dataset, splitBytes);
  return new SplitFiles(files, { dataset, format, compression: request.compression, header, splitBytes });
}
