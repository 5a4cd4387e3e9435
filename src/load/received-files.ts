import { ABANDONED_FILE_MS } from '../domain/limits.ts';
import type { FileRef, FileStore, FileWriter } from '../files/file-store.ts';
import { condemnAbandoned, forgetReceived, noteReceived } from '../postgres/ledger/received-files.ts';
import type { LoadContext } from './context.ts';

type Context = Pick<LoadContext, 'db' | 'files'>;

const filesPerRound = 100;

/**
 * Where a file is received into that is to become a load. Its name is in the ledger before it is complete in the store, so
 * that whoever is killed before the load is accepted leaves nothing that is not found again.
 */
export function receivingStore({ db, files }: Context): Pick<FileStore, 'create'> {
  return {
    async create(): Promise<FileWriter> {
      const writer = await files.create();
      return {
        ref: writer.ref,
        write: (bytes) => writer.write(bytes),
        async commit() {
          await noteReceived(db, writer.ref);
          return writer.commit();
        },
        discard: () => writer.discard(),
      };
    },
  };
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
    const refs = await condemnAbandoned(db, ABANDONED_FILE_MS, filesPerRound);
    for (const ref of refs) {
      await files.remove(ref);
      await forgetReceived(db, ref);
    }
    removed += refs.length;
    if (refs.length < filesPerRound) return removed;
  }
}
