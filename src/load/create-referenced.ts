import type { Entity } from '../domain/entity.ts';
import { unescapeCopy } from '../formats/json-text.ts';
import type { Transaction } from '../postgres/database.ts';
import { textArray } from './map/binary-array.ts';
import type { Rows } from './map/rows.ts';
import { createReferenced } from './merge/create-referenced.ts';
import type { LoadSource } from './running-store.ts';

/**
 * Calls `write`. If a preset rewrote the file, also creates the profiles to which the events of the
 * file refer. Creates the users before calling `write`, and the companies afterwards.
 */
export async function withReferenced<T>(
  { db }: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  write: () => Promise<T>,
): Promise<T> {
  if (source.preset === null || source.dryRun || rows.events.rows === 0) return write();
  const referenced = rows.events.referencedIds();
  const create = async (entity: Entity): Promise<void> => {
    for (const key of rows[entity].keys()) referenced[entity].delete(key);
    if (referenced[entity].size === 0) return;
    const { environmentId, loadId, keepsKeys: keepKeys } = source;
    const ids = textArray(Array.from(referenced[entity], unescapeCopy));
    await createReferenced(db, entity, { environmentId, loadId, chunkNo, keepKeys }, ids);
  };
  await create('users');
  const result = await write();
  await create('companies');
  return result;
}
