/* Received files are stored before they belong to a load. A file that no load uses is removed. */
import { ABANDONED_FILE_MS } from '../base/limits.ts';
import type { FileRef, FileWriter } from '../files/file-store.ts';
import type { LoadContext } from './context.ts';
import type { ReceivingStore } from './receive/unpack.ts';
import { convertIn, rewriteIn, sniffIn } from './sandbox-tasks.ts';
import { condemnAbandoned, forgetReceived, recordReceived, touchReceived } from './upload-store.ts';

type Context = Pick<LoadContext, 'db' | 'files'>;

const filesPerBatch = 100;

/**
 * Records each file in the ledger before it is complete, so that the sweep finds abandoned files.
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

/** Converts and rewrites files in the sandboxes of the environment. */
export function convertingStore(
  context: Context & Pick<LoadContext, 'sandboxes'>,
  environmentId: number,
): ReceivingStore {
  const { sandboxes } = context;
  const convert = convertIn(sandboxes, environmentId);
  const sniff = sniffIn(sandboxes, environmentId);
  return { ...receivingStore(context), convert, sniff, rewrite: rewriteIn(sandboxes, environmentId) };
}

/** If the entry in the ledger cannot be removed now, the sweep removes it later. */
export async function discardReceived({ db, files }: Context, ref: FileRef): Promise<void> {
  await files.remove(ref);
  await forgetReceived(db, ref).catch(() => undefined);
}

/** Removes abandoned files. Two calls may run at the same time. */
export async function removeAbandoned({ db, files }: Context): Promise<number> {
  let removed = 0;
  while (true) {
    const refs = await condemnAbandoned(db, ABANDONED_FILE_MS, filesPerBatch);
    for (const ref of refs) {
      await files.remove(ref);
      await forgetReceived(db, ref);
    }
    removed += refs.length;
    if (refs.length < filesPerBatch) return removed;
  }
}
