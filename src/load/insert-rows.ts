import { noOutcomes } from '../domain/load.ts';
import { fromByteString, unescapeCopy } from '../mapping/json-text.ts';
import type { Rows } from '../mapping/rows.ts';
import type { Database, Transaction } from '../postgres/database.ts';
import { insertNewUsers } from '../postgres/merge/merge-batch.ts';
import type { LoadSource } from '../postgres/stores/loads.ts';
import { hasNoUsers } from '../postgres/stores/profiles.ts';
import { addEvents } from './add-events.ts';
import type { LoadMemory } from './context.ts';
import type { MergedKinds } from './merge-rows.ts';

const NEW_ROW = 1;

/** Whether to try to insert a chunk's users instead of merging them: nothing known speaks against their being new. */
export async function expectsNewUsers(
  db: Database,
  source: LoadSource,
  memory: LoadMemory,
): Promise<boolean> {
  if (source.dryRun || source.entity === 'companies') return false;
  if (memory.users === 'unknown' && (await hasNoUsers(db, source.environmentId))) memory.users = 'new';
  return memory.users === 'new';
}

/** Whether the rows read are fit for it: users only, each of a record of its own, and none that removes anything. */
export function canBeInserted({ users, companies }: Rows): boolean {
  return users.rows > 0 && users.counted === users.rows && companies.rows === 0 && !users.removes;
}

/** Inserts a chunk's users, stamped as new, and adds its events. Throws a unique violation if one of them is known. */
export async function insertRows(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  memory: LoadMemory,
): Promise<MergedKinds> {
  const { users, events } = rows;
  const severalChunks = source.chunkCount > 1;
  const scope = {
    environmentId: source.environmentId,
    loadId: source.loadId,
    chunkNo,
    acceptedAt: source.acceptedAt,
    dated: false,
    removes: false,
    flat: true,
    counted: 'all',
    keepKeys: severalChunks,
  } as const;
  await insertNewUsers(
    transaction,
    scope,
    {
      text: users.finishInOrder(),
      keyHashes: severalChunks ? users.keyHashes(NEW_ROW) : null,
      companies: users.companies().map((company) => fromByteString(unescapeCopy(company))),
    },
    severalChunks && source.entity === 'auto',
  );
  const { repeated } = users;
  const inserted = { ...noOutcomes, inserted: users.rows - repeated, superseded: repeated };
  const added = events.rows === 0 ? {} : await addEvents(transaction, source, chunkNo, events, memory);
  return { identify_user: inserted, ...added };
}

/** What a merged chunk teaches: after one in which every user was new, the next may be inserted. */
export function learn(of: LoadMemory, { identify_user: users = noOutcomes }: MergedKinds): void {
  if (of.users !== 'unknown') return;
  if (users.updated + users.unchanged > 0) of.users = 'known';
  else if (users.inserted > 0) of.users = 'new';
}
