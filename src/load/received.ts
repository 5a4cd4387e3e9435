/* Files that were received: stored before they belong to a load, and removed if they never do. */
import { ABANDONED_FILE_MS } from '../base/limits.ts';
import type { FileRef, FileWriter } from '../files/file-store.ts';
import type { LoadContext } from './context.ts';
import type { ReceivingStore } from './receive/unpack.ts';
import { convertIn, rewriteIn, sniffIn } from './sandbox-tasks.ts';
import { condemnAbandoned, forgetReceived, recordReceived, touchReceived } from './upload-store.ts';

type Context = Pick<LoadContext, 'db' | 'files'>;

const filesPerBatch = 100;

/**
 * Returns the store that receives files. The name of a file is in the ledger before the file is complete in the store, so
 * that whoever is killed before the load is accepted leaves nothing that is not found again.
 */
export function receivingStore({ db, files }: Context): ReceivingStore {
  return {
    readRange: (ref, start, end) => files.readRange(ref, start, end),
    remove: (ref) => discardReceived({ db, files }, ref),
    touch: (ref) => touchReceived(db, ref),
    async create(): Promise<FileWriter> {
      const writer = await files.create();
      return {
        ref: writer.ref,
        write: (bytes) => writer.write(bytes),
        async commit() {
          await recordReceived(db, writer.ref);
          return writer.commit();
        },
        discard: () => writer.discard(),
      };
    },
  };
}

/** Does the same for files of an environment: dialects are detected, and files that are not text are converted, in its sandboxes. */
export function convertingStore(
  context: Context & Pick<LoadContext, 'sandboxes'>,
  environmentId: number,
): ReceivingStore {
  const { sandboxes } = context;
  const convert = convertIn(sandboxes, environmentId);
  const sniff = sniffIn(sandboxes, environmentId);
  return { ...receivingStore(context), convert, sniff, rewrite: rewriteIn(sandboxes, environmentId) };
}

/** Removes a received file that becomes no load. Should the ledger not learn of it, that is made up for. */
export async function discardReceived({ db, files }: Context, ref: FileRef): Promise<void> {
  await files.remove(ref);
  await forgetReceived(db, ref).catch(() => undefined);
}

/** Removes the files that nobody made a load of for ABANDONED_FILE_MS; how many. Harmless to do twice at once. */
export async function removeAbandoned({ db, files }: Context): Promise<number> {
  let removed = 0;
  for (;;) {
    const refs = await condemnAbandoned(db, ABANDONED_FILE_MS, filesPerBatch);
    for (const ref of refs) {
      await files.remove(ref);
      await forgetReceived(db, ref);
    }
    removed += refs.length;
    if (refs.length < filesPerBatch) return removed;
  }
}
