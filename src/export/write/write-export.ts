// Writes all rows of an export from one snapshot, by COPY, into split files and a manifest.
// `filter.ts` selects the rows, `formats.ts` formats them, and `stream.ts` merges their kinds.

import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Logger } from 'pino';
import { Fault } from '../../base/errors.ts';
import {
  type Dataset,
  datasets,
  type ExportFile,
  type ExportFormat,
  type ExportRequest,
  type FileDataset,
} from '../../domain/export.ts';
import type { FileStore } from '../../files/file-store.ts';
import { findUnfinishedLoads } from '../../load/read-store.ts';
import { type CopySelect, compileForCopy, copyOut, estimateRows } from '../../postgres/copy-out.ts';
import { databaseOn, findValue } from '../../postgres/database.ts';
import { inSnapshot, type Snapshot } from '../../postgres/session.ts';
import { type Filter, findLaterStart } from '../filter.ts';
import {
  createManifest,
  type DatasetSummary,
  type JobFacts,
  type ManifestFacts,
  manifestName,
} from '../manifest.ts';
import { AttemptFiles } from './attempt-files.ts';
import { formatWriters } from './formats.ts';
import { ndjsonText, type RowBlock, type RowText, rowBlocks } from './rows.ts';
import type { FileOwner } from './split-files.ts';
import { selectStreamEvents, selectStreamProfiles, streamBlocks } from './stream.ts';

export interface WriteExportContext {
  readonly pool: pg.Pool;
  readonly files: FileStore;
  readonly log: Logger;
}

export interface SnapshotFacts {
  /** Planner's estimate of the rows in all datasets. */
  readonly rowsExpected: number;
  /** Terminating this backend stops the export from reading. */
  readonly backendPid: number;
}

export interface WriteExportOptions extends Filter, WriteOptions {
  readonly manifest: JobFacts;
  readonly sessionName: string;
  /**
   * Receives facts about the snapshot. Called once, before the first row of the snapshot is read.
   */
  onSnapshot(facts: SnapshotFacts): void | Promise<void>;
}

export interface WrittenExport {
  readonly snapshotAt: Date;
  /** The manifest contains the same time. */
  readonly endedAt: Date;
  readonly cursor: string;
  readonly unfinishedLoads: readonly string[];
  /** All files that were written. The manifest is the last of them. */
  readonly files: readonly ExportFile[];
}

/**
 * Writes the files of an export. Memory use does not grow with the data. After a failure or an
 * abort, no file and no running statement remain.
 * @throws errors from PostgreSQL and the store, or the signal's reason
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
    const { snapshotAt, endedAt, cursor, unfinishedLoads } = facts;
    return { snapshotAt, endedAt, cursor, unfinishedLoads, files: files.files };
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
  for (const select of plans.flatMap(({ selects }) => selects)) {
    rowsExpected += await estimateRows(snapshot.client, select);
  }
  await options.onSnapshot({ rowsExpected, backendPid: snapshot.backendPid });
  const datasets = await writeAll(snapshot, files, plans, options);
  const db = databaseOn(snapshot.client);
  const eventsKeptFrom = await findLaterStart(db, options.request);
  const unfinishedLoads = await findUnfinishedLoads(db, options.environmentId);
  const { at: snapshotAt, cursor } = snapshot;
  const endedAt = (await findValue<Date>(db)`select clock_timestamp()`) ?? snapshotAt;
  const summary = { datasets, eventsKeptFrom, unfinishedLoads };
  return { ...options.manifest, snapshotAt, endedAt, cursor, ...summary };
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
  readonly owner?: FileOwner;
  readonly splitBytes: number;
  readonly signal: AbortSignal;
  onProgress(rows: number, bytes: number): void;
}

/** Reads further rows only after the sink has accepted the previous rows. */
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
    while (next.done !== true) {
      const block = next.value;
      const isText = toText === null || (content === null && sink.takesValues);
      const text = isText ? block : toText(block);
      content?.add(text);
      await sink.add(sink.takesValues ? block : text);
      rows += block.ends.length;
      options.onProgress(rows, sink.bytes);
      next = await blocks.next();
    }
  } finally {
    if (next.done !== true) await blocks.return(0);
  }
  if (next.value !== rows) throw new Fault(`Postgres sent ${next.value} ${dataset}, ${rows} were written`);
  await sink.end();
  options.onProgress(rows, sink.bytes);
  return { dataset, rows, contentSha256: content?.digest() ?? null };
}

export interface FilePlan {
  readonly dataset: FileDataset;
  readonly format: ExportFormat;
  readonly header: Buffer;
  /** Queries for the rows. The number of rows is estimated from these queries. */
  readonly selects: readonly CopySelect[];
  /** Yields at most `max` rows as COPY sends them. Returns the number that PostgreSQL reports. */
  blocks(client: pg.PoolClient, signal: AbortSignal, max?: number): AsyncGenerator<RowBlock, number>;
  /** Converts values to text. `null` if COPY already sends text. */
  readonly toText: ((block: RowBlock) => RowBlock) | null;
  /** Format of the hashed text. `null` if there is no content hash. */
  readonly content: RowText | null;
}

/**
 * Returns a plan for each dataset, or one plan for a stream. `client` must be in the transaction
 * that reads.
 */
export async function planFiles(
  client: pg.PoolClient,
  files: FileStore,
  filter: Filter,
): Promise<readonly FilePlan[]> {
  const { request } = filter;
  const plans: FilePlan[] = [];
  if (request.layout === 'stream') plans.push(planStream(files, filter));
  else
    for (const dataset of datasets) {
      if (request.datasets.includes(dataset)) plans.push(await planDataset(client, dataset, filter));
    }
  return plans;
}

async function planDataset(client: pg.PoolClient, dataset: Dataset, filter: Filter): Promise<FilePlan> {
  const { request } = filter;
  const { format } = request;
  const { header, selectFrom } = await formatWriters[format].selectDataset(
    databaseOn(client),
    dataset,
    filter,
  );
  const select = compileForCopy(selectFrom(filter));
  // There is no content hash with removed profiles, because their rows lack the times that the hash
  // omits.
  return { ...planRows(dataset, request, select), header, ...(request.includeRemoved && { content: null }) };
}

export function planRows(dataset: Dataset, request: ExportRequest, select: CopySelect): FilePlan {
  const { format } = request;
  const { copied, text, toText } = formatWriters[format];
  return {
    dataset,
    format,
    header: Buffer.alloc(0),
    selects: [select],
    blocks: (client, signal, max) => rowBlocks(copyOut(client, firstOf(select, max), copied, signal), text),
    toText: copied === 'values' ? toText(dataset, request) : null,
    content: text,
  };
}

function planStream(files: FileStore, filter: Filter): FilePlan {
  const { request } = filter;
  const profiles = selectStreamProfiles(filter);
  const events = request.datasets.includes('events') ? selectStreamEvents(filter) : null;
  const writer = formatWriters[request.format];
  return {
    dataset: 'stream',
    format: request.format,
    header: writer.streamHeader(request),
    selects: [profiles, events].filter((select) => select !== null),
    blocks: (client, signal, max) =>
      streamBlocks(
        files,
        profiles && copyOut(client, firstOf(profiles, max), 'values', signal),
        events && rowBlocks(copyOut(client, firstOf(events, max), 'values', signal), ndjsonText),
      ),
    toText: writer.toText('stream', request),
    // A stream has no content hash, because a load changes the order of its rows by last change.
    content: null,
  };
}

function firstOf({ text, parameters }: CopySelect, max: number | undefined): CopySelect {
  return { text: max === undefined ? text : `${text} limit ${max}`, parameters };
}

const LF = 0x0a;

/**
 * Hashes the rows of a dataset as text, without the two times of each profile row. The hash stays
 * the same if the rows are loaded into an empty environment and exported again. NDJSON and Parquet
 * files of the same rows have the same hash.
 */
export class ContentHash {
  readonly #hash = createHash('sha256');
  readonly #tail: number;
  readonly #headerTail: number;
  #scratch = Buffer.alloc(0);

  constructor(dataset: string, text: RowText) {
    const isOfProfiles = dataset === 'users' || dataset === 'companies';
    this.#tail = isOfProfiles ? text.profileTail : '\n'.length;
    this.#headerTail = isOfProfiles ? text.profileHeaderTail : '\n'.length;
  }

  /** Every file repeats the header, but the hash covers it once. */
  addHeader(header: Buffer): void {
    this.#hash.update(header.subarray(0, Math.max(0, header.length - this.#headerTail))).update('\n');
  }

  add(block: RowBlock): void {
    this.#hash.update(this.#tail === '\n'.length ? block.bytes : this.#withoutTail(block));
  }

  /** Returns the hash in hexadecimal digits. May be called only once. */
  digest(): string {
    return this.#hash.digest('hex');
  }

  /**
   * Copies the rows without their last bytes, because hashing each row separately would cost more
   * than copying.
   */
  #withoutTail({ bytes, ends }: RowBlock): Buffer {
    if (this.#scratch.length < bytes.length) this.#scratch = Buffer.allocUnsafeSlow(bytes.length);
    let filled = 0;
    let start = 0;
    for (const end of ends) {
      filled += bytes.copy(this.#scratch, filled, start, Math.max(start, end - this.#tail));
      this.#scratch[filled++] = LF;
      start = end;
    }
    return this.#scratch.subarray(0, filled);
  }
}
