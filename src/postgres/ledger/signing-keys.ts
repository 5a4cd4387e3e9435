import { randomBytes } from 'node:crypto';
import type { Database } from '../database.ts';

const secretBytes = 32;

/** The secret for a purpose, the same for every process: of those that make it at once, one is kept. */
export async function readSigningKey(db: Database, purpose: string): Promise<Buffer> {
  const known = await find(db, purpose);
  if (known !== undefined) return known;
  await db
    .insertInto('signing_keys')
    .values({ purpose, secret: randomBytes(secretBytes) })
    .onConflict((conflict) => conflict.column('purpose').doNothing())
    .execute();
  const made = await find(db, purpose);
  if (made === undefined) throw new Error(`the signing key ${purpose} was removed while it was made`);
  return made;
}

async function find(db: Database, purpose: string): Promise<Buffer | undefined> {
  const row = await db
    .selectFrom('signing_keys')
    .select('secret')
    .where('purpose', '=', purpose)
    .executeTakeFirst();
  return row?.secret;
}
