import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import type { Config } from '../../config.ts';
import { READ_BYTES } from '../../domain/limits.ts';
import type { FileStore } from '../../files/file-store.ts';
import type { SourceFormat } from '../../formats/detect-format.ts';
import { type ReceivedFile, receiveLocal } from '../../load/receive/receive.ts';
import type { Input } from './find-files.ts';

export interface ReadOptions {
  readonly format: SourceFormat | undefined;
  readonly config: Config;
  readonly store: Pick<FileStore, 'create'>;
  readonly signal: AbortSignal;
  /** Told the bytes read so far. */
  readonly onBytes: (bytes: number) => void;
}

/** As the job is to be called. */
export function nameOf({ path }: Input): string {
  return path === null ? 'stdin' : basename(path);
}

/** Takes the file into the store, as an upload would be. */
export async function readInput(input: Input, options: ReadOptions): Promise<ReceivedFile> {
  const { config, format, store, signal, onBytes } = options;
  const source =
    input.path === null ? process.stdin : createReadStream(input.path, { highWaterMark: READ_BYTES });
  const hints = { format, filename: input.path ?? undefined };
  try {
    return await receiveLocal(counted(source, onBytes), store, hints, config, signal);
  } finally {
    source.destroy();
  }
}

async function* counted(
  source: AsyncIterable<Buffer>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  let total = 0;
  for await (const bytes of source) {
    total += bytes.length;
    onBytes(total);
    yield bytes;
  }
}
