import type { Config } from '../../config.ts';
import type { FileStore } from '../../files/file-store.ts';
import { type ReceivedFile, type ReceiveHints, receive } from './receive.ts';

/** Whoever pipes into us, or a disk, may take its time; a timer takes no more than this. */
const noStallMs = 2 ** 31 - 1;

/** Takes in what this machine has: no sender who could be too slow. Throws as `receive` does. */
export function receiveLocal(
  source: AsyncIterable<Uint8Array>,
  store: Pick<FileStore, 'create'>,
  hints: ReceiveHints,
  config: Pick<Config, 'maxUploadBytes' | 'maxInflatedBytes' | 'chunkBytes'>,
  signal: AbortSignal,
): Promise<ReceivedFile> {
  const { maxUploadBytes, maxInflatedBytes, chunkBytes } = config;
  const limits = { maxUploadBytes, maxInflatedBytes, minBytesPerSecond: 0, stallMs: noStallMs };
  return receive(source, store, { ...hints, chunkBytes }, limits, signal);
}
