import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { FileStore } from '../../files/file-store.ts';

/**
 * Says at once what is wrong with a bucket: else it would show at the first upload. A service starts all the same, and is
 * not ready while it lasts.
 */
export async function warnOfStorage({ storage }: Config, files: FileStore, log: Logger): Promise<void> {
  if (storage.kind !== 's3') return;
  try {
    await files.check();
  } catch (error) {
    log.warn(error instanceof Error ? error.message : String(error));
  }
}
