import { createReadStream } from 'node:fs';
import { READ_BYTES } from '../../domain/limits.ts';
import { gunzip } from '../../formats/decompress.ts';
import { type RowBlock, rowBlocks } from '../write/row-blocks.ts';
import type { TextFormat } from '../write/text-format.ts';
import type { DatasetCheck } from './dataset-check.ts';
import type { ListedFile } from './read-manifest.ts';

/** How many rows a file has, the header of a CSV aside; null where that is not looked at. `dataset` is told of them. */
export async function readRows(
  path: string,
  file: ListedFile,
  dataset: DatasetCheck | null,
): Promise<number | null> {
  const format = formatOf(file.filename);
  if (format === null) {
    dataset?.trust(file.rows);
    return null;
  }
  const stored: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: READ_BYTES });
  const text = file.filename.endsWith('.gz') ? gunzip(stored, () => undefined) : stored;
  let rows = 0;
  let isFirst = true;
  for await (const block of rowBlocks(text, format)) {
    const found = isFirst && format === 'csv' ? withoutHeader(block, dataset) : block;
    isFirst = false;
    rows += found.ends.length;
    dataset?.rows(found, format);
  }
  return rows;
}

function formatOf(filename: string): TextFormat | null {
  if (/\.csv(\.gz)?$/.test(filename)) return 'csv';
  return /\.ndjson(\.gz)?$/.test(filename) ? 'ndjson' : null;
}

function withoutHeader({ bytes, ends }: RowBlock, dataset: DatasetCheck | null): RowBlock {
  const [end = 0, ...rest] = ends;
  dataset?.header(bytes.subarray(0, end));
  return { bytes: bytes.subarray(end), ends: rest.map((each) => each - end) };
}
