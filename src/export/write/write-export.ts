import type pg from 'pg';
import type { Logger } from 'pino';
import type { ExportFile } from '../../domain/export.ts';
import type { FileStore } from '../../files/file-store.ts';
import type { Filter } from '../filter/filter.ts';
import { AttemptFiles } from './attempt-files.ts';
import { estimateRows } from './copy-out.ts';
import {
  createManifest,
  type DatasetSummary,
  type JobFacts,
  type ManifestFacts,
  manifestName,
} from './manifest.ts';
import { planDatasets } from './plan-datasets.ts';
import { inSnapshot, type Snapshot } from './snapshot.ts';
import { type DatasetPlan, type WriteOptions, writeDataset } from './write-dataset.ts';

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
