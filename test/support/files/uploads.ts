import type { System } from '../../../src/context.ts';
import { keepUpload } from '../../../src/load/uploads.ts';

const limits = { maxUploadBytes: 1e9, maxInflatedBytes: 1e9, minBytesPerSecond: 0, stallMs: 20_000 };

/** Stores a CSV as an upload, but does not load it. Returns the id of the upload. */
export async function keepCsv(
  system: Pick<System, 'pool' | 'db' | 'files'>,
  environmentId: number,
  text: string,
): Promise<string> {
  async function* source() {
    yield Buffer.from(text);
  }
  const description = { filename: 'kept.csv', contentType: 'text/csv', isGzip: false };
  const { signal } = new AbortController();
  return (await keepUpload(system, environmentId, source(), description, limits, signal)).uploadId;
}
