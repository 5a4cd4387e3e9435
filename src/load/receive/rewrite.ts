import { inputError } from '../../base/errors.ts';
import { turn } from '../../base/yielding.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { ReceivedFile } from './receive.ts';
import { RecordIndex } from './record-index.ts';
import type { RewriteSeam } from './seam.ts';

/** @throws InputError if nothing reads files with a preset. */
export function requireRewriter(rewriter: RewriteSeam | null): RewriteSeam {
  if (rewriter === null) throw inputError('invalid_field', 'this service has no presets', 'preset');
  return rewriter;
}

/** Has the lines of a rewritten file written, and returns what becomes of the received one. */
export async function rewriteFile(
  received: ReceivedFile,
  lines: AsyncIterable<Buffer>,
  write: (lines: AsyncIterable<Buffer>) => Promise<FileRef>,
): Promise<ReceivedFile> {
  const index = new RecordIndex('ndjson', received.chunkBytes, 0);
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
