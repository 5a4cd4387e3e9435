import { createHash } from 'node:crypto';
import { Fault } from '../domain/errors.ts';
import type { ExportFile } from '../domain/export.ts';
import type { FileFolder, FileRef, FileStore } from '../files/file-store.ts';
import type { WrittenArchive } from '../postgres/retention/archives.ts';
import { readArchive } from './read-archive.ts';

/**
 * Reads all of a file from where it is stored: it is what is left of its events.
 * @throws Fault if it is not what was written.
 */
export async function checkArchive(
  files: FileStore,
  { ref, rows, bytes, sha256 }: ExportFile,
): Promise<WrittenArchive> {
  const hash = createHash('sha256');
  for await (const part of files.open(ref as FileRef)) hash.update(part as Buffer);
  if (hash.digest('hex') !== sha256) throw new Fault('an archive is not stored as it was written');
  let first: number | null = null;
  let last = 0;
  for await (const events of readArchive(files, { ref: ref as FileRef, bytes, rows })) {
    first ??= events[0]?.micros ?? null;
    last = events.at(-1)?.micros ?? last;
  }
  if (first === null) throw new Fault('an archive without events');
  const folder = ref.slice(0, ref.lastIndexOf('/')) as FileFolder;
  return { folder, ref, rows, bytes, sha256, firstMicros: first, lastMicros: last };
}
