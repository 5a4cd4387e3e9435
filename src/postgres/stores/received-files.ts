import { sql } from 'kysely';
import type { FileRef } from '../../files/file-store.ts';
import type { Database } from '../database.ts';

/** Before the file is complete in the store: from then on somebody must know of it. */
export async function recordReceived(db: Database, ref: FileRef): Promise<void> {
  await db.insertInto('received_files').values({ file_ref: ref }).execute();
}

/** Somebody still uses the file; false if it is being removed, or gone. */
export async function touchReceived(db: Database, ref: FileRef): Promise<boolean> {
  const row = await db
    .updateTable('received_files')
    .set({ received_at: sql<Date>`now()` })
    .where('file_ref', '=', ref)
    .where('condemned_at', 'is', null)
    .returning('file_ref')
    .executeTakeFirst();
  return row !== undefined;
}

/** The file belongs to a load from now on; false if it is being removed. Call it in the transaction of the load. */
export async function takeReceived(db: Database, ref: FileRef): Promise<boolean> {
  const row = await db
    .deleteFrom('received_files')
    .where('file_ref', '=', ref)
    .where('condemned_at', 'is', null)
    .returning('file_ref')
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * No load may take the file any more: true. False if one has it, or it is gone. Waits for a transaction that took it and of
 * which nobody knows yet whether it is committed. Call it in a transaction.
 * @throws an error of Postgres if that is not known within `withinMs`
 */
export async function condemnReceived(db: Database, ref: FileRef, withinMs: number): Promise<boolean> {
  const bound = `${withinMs}ms`;
  await sql`
    select set_config('statement_timeout', ${bound}, true), set_config('lock_timeout', ${bound}, true)`.execute(
    db,
  );
  const row = await db
    .updateTable('received_files')
    .set({ condemned_at: sql`coalesce(condemned_at, now())` })
    .where('file_ref', '=', ref)
    .returning('file_ref')
    .executeTakeFirst();
  return row !== undefined;
}

/** Up to `limit` files that no load may take any more, because none has for `olderThanMs`. */
export async function condemnAbandoned(db: Database, olderThanMs: number, limit: number): Promise<FileRef[]> {
  const rows = await db
    .updateTable('received_files')
    .set({ condemned_at: sql`coalesce(condemned_at, now())` })
    .where('file_ref', 'in', (eb) =>
      eb
        .selectFrom('received_files')
        .select('file_ref')
        .where('received_at', '<', sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`)
        .orderBy('received_at')
        .limit(limit),
    )
    .returning('file_ref')
    .execute();
  return rows.map(({ file_ref }) => file_ref as FileRef);
}

/** Once the file is gone. */
export async function forgetReceived(db: Database, ref: FileRef): Promise<void> {
  await db.deleteFrom('received_files').where('file_ref', '=', ref).execute();
}
