import { type InputError, inputError } from '../../base/errors.ts';
import { KiB, MAX_REJECT_RAW_BYTES, SNIFF_BYTES } from '../../base/limits.ts';
import { turn } from '../../base/yielding.ts';
import { type FileRef, writeWhole } from '../../files/file-store.ts';
import type { CsvForm } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { listed } from '../map/column-plan.ts';
import type { ReceivedFile, RewriteSeam } from './received-file.ts';
import { RecordIndex } from './record-index.ts';
import { plainCell, rewriteChunk } from './rewrite-csv.ts';
import type { ReceivingStore } from './unpack.ts';

/* CSV dialects become plain CSV, and files that need a preset become NDJSON. */

/** Largest chunk that is rewritten outside a sandbox. */
const REWRITTEN_HERE_BYTES = 64 * KiB;
const blankLines = Buffer.alloc(64 * KiB, '\n');

/** @throws InputError if no capability can read presets */
export function requireRewriter(rewriter: RewriteSeam | null): RewriteSeam {
  if (rewriter === null)
    throw inputError('invalid_field', 'preset is not supported by this service', 'preset');
  return rewriter;
}

/** Writes `lines` to a new file, and describes that file. */
export async function rewriteFile(
  received: ReceivedFile,
  lines: AsyncIterable<Buffer>,
  write: (lines: AsyncIterable<Buffer>) => Promise<FileRef>,
  index = new RecordIndex('ndjson', received.chunkBytes, 0),
): Promise<ReceivedFile> {
  let storedBytes = 0;
  async function* indexed(): AsyncGenerator<Buffer> {
    for await (const bytes of lines) {
      for (const _ of index.add(bytes)) await turn();
      storedBytes += bytes.length;
      yield bytes;
    }
    for (const _ of index.end()) await turn();
  }
  const ref = await write(indexed());
  const { rows: totalRows, chunks } = index;
  return { ...received, ref, format: 'ndjson', header: null, storedBytes, totalRows, chunks };
}

/** Rewrites a CSV dialect as plain CSV. Always removes the received file. */
export async function rewriteCsv(
  store: ReceivingStore,
  received: ReceivedFile,
  form: CsvForm,
  signal: AbortSignal,
): Promise<ReceivedFile> {
  const { header, ref, chunkBytes, chunks } = received;
  const [first] = chunks;
  if (header === null || first === undefined) return received;
  try {
    const names = Buffer.from(`${header.columns.map(plainCell).join(',')}\n`);
    const index = new RecordIndex('csv', chunkBytes, names.length);
    index.open(header, first.firstLine);
    const writer = await store.create();
    const lines = plainLines(store, received, form, names, signal);
    const rewritten = await rewriteFile(received, lines, (each) => writeWhole(writer, each), index);
    if (rewritten.totalRows === 0) {
      await store.remove(rewritten.ref);
      throw noRecord(header);
    }
    const head = await store.readRange(ref, 0, Math.min(SNIFF_BYTES, chunks.at(-1)?.byteEnd ?? 0));
    return { ...rewritten, format: 'csv', header, head };
  } finally {
    await store.remove(ref);
  }
}

export function noRecord({ columns }: CsvHeader): InputError {
  return inputError('empty_file', 'The file has a header but no record', `columns: ${listed(columns)}`);
}

/** Each record keeps its line number relative to the header. */
async function* plainLines(
  store: ReceivingStore,
  { ref, header, chunks }: ReceivedFile,
  form: CsvForm,
  names: Buffer,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  yield names;
  let line = chunks[0]?.firstLine ?? 1;
  for (const { byteStart, byteEnd, firstLine, oversized } of chunks) {
    signal.throwIfAborted();
    for (let missing = firstLine - line; missing > 0; missing -= blankLines.length)
      yield blankLines.subarray(0, missing);
    const end = oversized ? Math.min(byteEnd, byteStart + MAX_REJECT_RAW_BYTES) : byteEnd;
    const bytes = await store.readRange(ref, byteStart, end);
    const chunk = {
      form,
      width: header?.columns.length ?? 0,
      bytes,
      oversized: oversized ? byteEnd - byteStart : null,
    };
    const isHere = bytes.length <= REWRITTEN_HERE_BYTES || store.rewrite === undefined;
    const { text, lines } = isHere ? rewriteChunk(chunk) : await store.rewrite(chunk, signal);
    yield Buffer.from(text.buffer, text.byteOffset, text.length);
    line = firstLine + lines;
  }
}
