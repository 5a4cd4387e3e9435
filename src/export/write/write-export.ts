/*
 * Writing an export: all its rows from one snapshot, by COPY, split into files with a manifest. `filter.ts`
 * beside this folder says which rows; `formats.ts` what they look
 * like in each format, and `stream.ts` how rows of all kinds become one file. Memory stays flat however many rows there are.
 */
import type pg from 'pg';
import type { Logger } from 'pino';
import { Fault } from '../../domain/errors.ts';
import type { ExportFile, ExportRequest } from '../../domain/export.ts';
import type { FileStore } from '../../files/file-store.ts';
import { inSnapshot, type Snapshot } from '../../postgres/session.ts';
import type { Filter } from '../filter.ts';
import { AttemptFiles } from './attempt-files.ts';
import { estimateRows } from './copy-out.ts';
import { formatWriters } from './formats.ts';
import {
  createManifest,
  type DatasetSummary,
  type JobFacts,
  type ManifestFacts,
  manifestName,
} from './manifest.ts';
import { type FilePlan, planFiles } from './plan.ts';
import { ContentHash } from './row-blocks.ts';

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
  /** The name of its PostgreSQL session. */
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
  const plans = await planFiles(snapshot.client, context.files, options);
  const rowsExpected = await estimateAll(snapshot, plans);
  await options.onSnapshot({ at: snapshot.at, rowsExpected, backendPid: snapshot.backendPid });
  const datasets = await writeAll(snapshot, files, plans, options);
  return { ...options.manifest, snapshotAt: snapshot.at, datasets };
}

async function estimateAll({ client }: Snapshot, plans: readonly FilePlan[]): Promise<number> {
  let rows = 0;
  for (const { select, pieces } of plans.flatMap(({ readings }) => readings)) {
    rows += (await estimateRows(client, select)) + (pieces?.rows ?? 0);
  }
  return rows;
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
      const text = toText !== null && (content !== null || !sink.takesValues) ? toText(block) : block;
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
