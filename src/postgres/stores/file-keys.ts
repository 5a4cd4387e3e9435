/**
 * The keys of sealed files, and the records refused from these, which are encrypted under the same keys. A deleted key stays in dead rows, WAL and backups for as long as these
 * are kept.
 */
import { type FileRef, isSealed } from '../../files/file-store.ts';
import { type FileKeys, openPart, requireKey, sealPart } from '../../files/sealed-files.ts';
import { type PersonalKeys, unwrapKey, wrapKey } from '../../personal-keys.ts';
import type { Database } from '../database.ts';

/** The database, and the keys of the installation that those of its files are encrypted under. */
export interface KeyedDatabase {
  readonly db: Database;
  readonly personal: { readonly keys: PersonalKeys };
}

export function fileKeys({ db, personal: { keys } }: KeyedDatabase): FileKeys {
  return {
    async keep(ref, secret) {
      await db
        .insertInto('file_keys')
        .values({ file_ref: ref, ...wrapKey(keys, ref, secret) })
        .execute();
    },
    async find(ref) {
      const row = await db
        .selectFrom('file_keys')
        .select(['secret', 'key_id'])
        .where('file_ref', '=', ref)
        .executeTakeFirst();
      return row === undefined ? null : unwrapKey(keys, ref, row);
    },
    async destroy(place) {
      // "0" follows "/": everything in the folder lies between them.
      await db
        .deleteFrom('file_keys')
        .where((eb) =>
          eb.or([
            eb('file_ref', '=', place),
            eb.and([eb('file_ref', '>', `${place}/`), eb('file_ref', '<', `${place}0`)]),
          ]),
        )
        .execute();
    },
  };
}

/** Returns the function that encrypts records of a file for the ledger; null if the file is not sealed. */
export async function findSeal(
  keyed: KeyedDatabase,
  file: string | null,
): Promise<((clear: Uint8Array) => Buffer) | null> {
  if (file === null || !isSealed(file as FileRef)) return null;
  const key = await requireKey(fileKeys(keyed), file as FileRef);
  return (clear) => sealPart(key, clear);
}

interface Sealed {
  readonly raw: Buffer;
  readonly sealedIn: string | null;
}

/** Decrypts the records; nothing is left of those whose key was destroyed. */
export async function unseal<T extends Sealed>(
  keyed: KeyedDatabase,
  rows: readonly T[],
): Promise<(Omit<T, 'sealedIn'> & { readonly isSealed?: true })[]> {
  const keys = new Map<string, Buffer | null>();
  for (const file of new Set(rows.flatMap(({ sealedIn }) => sealedIn ?? [])))
    keys.set(file, await fileKeys(keyed).find(file as FileRef));
  return rows.map(({ sealedIn, ...row }) => {
    if (sealedIn === null) return row;
    const key = keys.get(sealedIn) ?? null;
    return { ...row, isSealed: true, raw: key === null ? Buffer.alloc(0) : openPart(key, row.raw) };
  });
}
