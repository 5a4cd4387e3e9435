import { Fault } from '../../domain/errors.ts';
import type { Dataset, ExportFormat, ExportRequest } from '../../domain/export.ts';
import type { AttemptFiles } from './attempt-files.ts';
import { ContentHash } from './content-hash.ts';
import { type CopyFormat, copyOut } from './copy-out.ts';
import type { CopySelect } from './copy-select.ts';
import type { DatasetSink } from './dataset-sink.ts';
import type { DatasetSummary } from './manifest.ts';
import { ParquetFiles } from './parquet-files.ts';
import { rowBlocks } from './row-blocks.ts';
import type { Snapshot } from './snapshot.ts';
import { SplitFiles } from './split-files.ts';
import { hasContentHash } from './text-format.ts';

/** A dataset, ready to be read. */
export interface DatasetPlan {
  readonly dataset: Dataset;
  readonly format: ExportFormat;
  readonly select: CopySelect;
  /** Where some of it is not in the database: what is to be read instead, and how many rows there are elsewhere. */
  readonly pieces: { selects(): AsyncIterable<CopySelect>; readonly rows: number } | null;
  /** What every file begins with. */
  readonly header: Buffer;
}

export interface WriteOptions {
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
