/** The keys of sealed files. A deleted key stays in dead rows, WAL and backups for as long as these are kept. */
import type { FileKeys } from '../../files/sealed-files.ts';
import type { Database } from '../database.ts';

export function fileKeys(db: Database): FileKeys {
  return {
    async keep(ref, secret) {
      await db.insertInto('file_keys').values({ file_ref: ref, secret }).execute();
    },
    async find(ref) {
      const row = await db
        .selectFrom('file_keys')
        .select('secret')
        .where('file_ref', '=', ref)
        .executeTakeFirst();
      return row?.secret ?? null;
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
