import type { Storage } from '../base/storage-url.ts';
import type { FileStore } from './file-store.ts';
import { createFileSystemStore } from './file-system.ts';
import { createS3Store } from './s3-store.ts';

/** Returns the store of files, without sending a request. Files must not exceed `maxFileBytes`. */
export function openFileStore(storage: Storage, maxFileBytes: number): FileStore {
  if (storage.kind === 's3') return createS3Store(storage, { maxFileBytes });
  return createFileSystemStore(storage.directory);
}
