import { noOutcomes } from '../domain/load.ts';
import { hasNoUsers } from '../ingest/profile-store.ts';
import type { Database, Transaction } from '../postgres/database.ts';
import { addEvents } from './add-events.ts';
import { type ClaimedChunk, commitWithCompanies, type DoneChunk } from './commit-chunk.ts';
import type { LoadContext, LoadMemory } from './context.ts';
import type { Rows } from './map/rows.ts';
import { insertNewUsers } from './merge/merge-batch.ts';
import type { MergedKinds } from './merge-rows.ts';
import type { LoadSource } from './running-store.ts';

const NEW_ROW = 1;

/** Inserting is worth trying only if all users of the chunk could be new. */
export async function expectsNewUsers(
  db: Database,
  source: LoadSource,
  memory: LoadMemory,
): Promise<boolean> {
  if (source.entity === 'companies' || source.dryRun) return false;
  if (memory.users === 'unknown' && (await hasNoUsers(db, source.environmentId))) memory.users = 'new';
  return memory.users === 'new';
}

/**
 * True if the chunk has only users and events, every user has a record, and no row removes a value.
 */
export function canBeInserted({ users, companies }: Rows): boolean {
  return users.rows > 0 && users.counted === users.rows && companies.rows === 0 && !users.removes;
}

/** @throws a unique violation if a user exists */
export function insertChunk(
  context: LoadContext,
  source: LoadSource,
  claimed: ClaimedChunk,
  rows: Rows,
): Promise<DoneChunk> {
  const memory = context.memory.of(source.loadId);
  return commitWithCompanies(context, source, claimed, rows, (transaction, companies) =>
    insertRows(transaction, source, claimed.claim.part, rows, memory, companies),
  );
}

async function insertRows(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  memory: LoadMemory,
  companies: readonly string[],
): Promise<MergedKinds> {
  const { users, events } = rows;
  const { keepsKeys } = source;
  const scope = {
    environmentId: source.environmentId,
    loadId: source.loadId,
    chunkNo,
    acceptedAt: source.acceptedAt,
    removes: false,
    keepsExisting: source.keepsExisting,
    canUseContainment: true,
    counted: 'all',
    keepKeys: keepsKeys,
  } as const;
  const newUsers = {
    text: users.finishInOrder(),
    keyHashes: keepsKeys ? users.keyHashes(NEW_ROW) : null,
    companies,
  };
  await insertNewUsers(transaction, scope, newUsers, keepsKeys && source.entity === 'auto');
  const { repeated } = users;
  const inserted = { ...noOutcomes, inserted: users.rows - repeated, superseded: repeated };
  const added = events.rows === 0 ? {} : await addEvents(transaction, source, chunkNo, events, memory);
  return { identify_user: inserted, ...added };
}

/** If all users of a merged chunk were new, inserting the next chunk is worth trying. */
export function rememberUsers(memory: LoadMemory, { identify_user: users = noOutcomes }: MergedKinds): void {
  if (memory.users !== 'unknown') return;
  if (users.updated + users.unchanged > 0) memory.users = 'known';
  else if (users.inserted > 0) memory.users = 'new';
}
