import type pg from 'pg';
import { type Entity, entities, eventKinds, kindOfEntity, type RecordKind } from '../domain/entity.ts';
import { addOutcomes, type CountedKind, keepsPlan, noOutcomes, type Outcomes } from '../domain/load.ts';
import { fromByteString, unescapeCopy } from '../formats/json-text.ts';
import { inSavepoint, type Transaction } from '../postgres/database.ts';
import { isDataError } from '../postgres/sqlstate.ts';
import { addEvents, addMissingEvents } from './add-events.ts';
import type { LoadMemory } from './context.ts';
import type { RecordFilter } from './map/event-buffer.ts';
import type { Rows } from './map/rows.ts';
import { type MergeScope, prepareIncoming } from './merge/incoming.ts';
import { type Batch, type Merged, mergeBatch, recordUnchanged } from './merge/merge-batch.ts';
import { createCompanies } from './merge/upsert.ts';
import { planBatch, recordNewCompanies } from './plans/plan-batch.ts';
import type { LoadSource } from './running-store.ts';

/** Outcomes by kind of record. Kinds without outcomes are missing. */
export type MergedKinds = Readonly<Partial<Record<CountedKind, Outcomes>>>;

/** Refuses a record. `kind` is the kind under which the record is counted. */
type RefuseRecord = (record: number, kind: RecordKind, message: string) => void;

const none: Refused = new Map();

/**
 * Merges users, then companies, then companies to which only users refer, then events. All writers
 * use this order, so deadlocks are rare. After a deadlock, the chunk is repeated. `companies` are
 * the users' companies, except those that are known to exist. Default: all companies of the users.
 */
export async function mergeRows(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  memory: LoadMemory,
  companies?: readonly string[],
): Promise<MergedKinds> {
  const profiles = await mergeProfiles(transaction, source, chunkNo, rows, none, companies);
  if (rows.events.rows === 0) return profiles;
  return { ...profiles, ...(await addEvents(transaction, source, chunkNo, rows.events, memory)) };
}

/** Merges a chunk. Leaves out the records that pass our checks but that the database refuses. */
export async function mergeRowsCarefully(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  refuse: RefuseRecord,
): Promise<MergedKinds> {
  await prepareIncoming(transaction.client);
  const refused = new Map<number, Refusal>();
  while (true) {
    const merge = async () => ({
      ...(await mergeProfiles(transaction, source, chunkNo, rows, refused)),
      ...(await addAccepted(transaction, source, chunkNo, rows, (record) => !refused.has(record))),
    });
    const merged = await inSavepoint(transaction.client, merge, isDataError);
    if (!('error' in merged)) return withRefused(merged.result, refused, refuse);
    const countBefore = refused.size;
    await findAllRefused(transaction, source, chunkNo, rows, refused);
    // The search has found no record that causes the error.
    if (refused.size === countBefore) throw merged.error;
  }
}

async function findAllRefused(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  refused: Map<number, Refusal>,
): Promise<void> {
  const { client } = transaction;
  for (const entity of entities) {
    const records = rows[entity].records();
    await findRefused(client, records, kindOfEntity[entity], refused, async (includes) => {
      await mergeEntity(transaction, source, chunkNo, rows, entity, includes);
      if (entity === 'users') await createTheirCompanies(transaction, source, chunkNo, rows);
    });
  }
  for (const kind of eventKinds) {
    await findRefused(client, rows.events.records(kind), kind, refused, (includes) =>
      addAccepted(transaction, source, chunkNo, rows, includes),
    );
  }
}

async function addAccepted(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  { events }: Rows,
  includes: RecordFilter,
): Promise<MergedKinds> {
  return events.rows === 0 ? {} : addMissingEvents(transaction, source, chunkNo, events, includes);
}

function withRefused(merged: MergedKinds, refused: Refused, refuse: RefuseRecord): MergedKinds {
  const kinds: Partial<Record<CountedKind, Outcomes>> = { ...merged };
  for (const [record, { kind, message }] of refused) {
    refuse(record, kind, message);
    kinds[kind] = addOutcomes(kinds[kind] ?? noOutcomes, { rejected: 1 });
  }
  return kinds;
}

async function mergeProfiles(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  refused: Refused,
  companies?: readonly string[],
): Promise<MergedKinds> {
  const kinds: Partial<Record<CountedKind, Outcomes>> = await recordUnchangedRecords(
    transaction,
    source,
    chunkNo,
    rows,
  );
  if (rows.users.rows + rows.companies.rows === 0) return kinds;
  await prepareIncoming(transaction.client);
  for (const entity of entities) {
    const buffer = rows[entity];
    if (buffer.rows === 0) continue;
    const includes = refused.size === 0 ? null : (record: number) => !refused.has(record);
    const merged = await mergeEntity(transaction, source, chunkNo, rows, entity, includes);
    const counted = includes === null ? buffer.counted : buffer.countedAmong(includes);
    const { inserted, updated, unchanged } = merged;
    // Only the last record of a key in this chunk has an outcome. Earlier ones are superseded.
    const superseded = counted - inserted - updated - unchanged;
    const kind = kindOfEntity[entity];
    const outcomes = { inserted, updated, unchanged, superseded };
    kinds[kind] = addOutcomes(kinds[kind] ?? noOutcomes, outcomes);
  }
  await createTheirCompanies(transaction, source, chunkNo, rows, companies);
  return kinds;
}

/** Stores the keys of skipped records, because other chunks may contain the same keys. */
async function recordUnchangedRecords(
  { db }: Transaction,
  source: LoadSource,
  chunkNo: number,
  { unchanged }: Rows,
): Promise<Partial<Record<CountedKind, Outcomes>>> {
  const kinds: Partial<Record<CountedKind, Outcomes>> = {};
  for (const entity of entities) {
    const count = unchanged.countOf(entity);
    if (count === 0) continue;
    kinds[kindOfEntity[entity]] = { ...noOutcomes, unchanged: count };
    // A plan always stores the keys, because they are needed when it is applied.
    if (!source.keepsKeys && source.pass !== 'plan') continue;
    await recordUnchanged(db, entity, { loadId: source.loadId, chunkNo }, unchanged.keyHashes(entity));
  }
  return kinds;
}

/**
 * Creates the companies to which only users refer. `companies` are the users' companies, except
 * those that are known to exist. Default: all companies of the users.
 */
async function createTheirCompanies(
  { db }: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  companies?: readonly string[],
): Promise<void> {
  if (rows.users.rows === 0 || companies?.length === 0) return;
  const scope = scopeOf(source, chunkNo, rows, 'users');
  if (keepsPlan(source.pass)) return recordNewCompanies(db, scope);
  if (source.dryRun) return;
  // The keys of new companies are needed only if the file may also contain records of companies.
  const keepKeys = scope.keepKeys && source.entity === 'auto';
  await createCompanies(db, { ...scope, keepKeys }, companies);
}

/** Decodes companies as they appear in the COPY text. */
export function companyIds(companies: readonly string[]): readonly string[] {
  return companies.map((company) => fromByteString(unescapeCopy(company)));
}

function mergeEntity(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  entity: Entity,
  includes: RecordFilter | null,
): Promise<Merged> {
  const batch = batchOf(source, chunkNo, rows, entity, includes);
  return source.dryRun
    ? planBatch(transaction, batch, keepsPlan(source.pass))
    : mergeBatch(transaction, batch);
}

export function batchOf(
  source: LoadSource,
  chunkNo: number,
  rows: Rows,
  entity: Entity,
  includes: RecordFilter | null,
): Batch {
  const scope = scopeOf(source, chunkNo, rows, entity);
  const buffer = rows[entity];
  const isFiltered = rows.unchanged.countOf(entity) > 0;
  if (includes === null) {
    return { entity, scope, isFiltered, text: buffer.finish(), keys: buffer.rows - buffer.repeated };
  }
  const groups = buffer.groups(includes);
  return { entity, scope, isFiltered, text: buffer.text(groups), keys: groups.length };
}

function scopeOf(source: LoadSource, chunkNo: number, rows: Rows, entity: Entity): MergeScope {
  const { removes, counted, rows: all } = rows[entity];
  return {
    environmentId: source.environmentId,
    loadId: source.loadId,
    chunkNo,
    acceptedAt: source.acceptedAt,
    removes,
    keepsExisting: source.keepsExisting,
    canUseContainment: !removes && !source.keepsExisting && !rows[entity].nested,
    counted: countedShare(counted, all),
    keepKeys: source.keepsKeys,
  };
}

function countedShare(counted: number, all: number): MergeScope['counted'] {
  if (counted === 0) return 'none';
  return counted === all ? 'all' : 'some';
}

type Refused = ReadonlyMap<number, Refusal>;

interface Refusal {
  readonly kind: RecordKind;
  readonly message: string;
}

/**
 * Finds, by halving `all`, the records that the database refuses. If the database refuses records
 * only in combination, the last of these records counts as refused. Every trial is rolled back.
 */
async function findRefused(
  client: pg.PoolClient,
  all: readonly number[],
  kind: RecordKind,
  refused: Map<number, Refusal>,
  merge: (includes: RecordFilter) => Promise<unknown>,
): Promise<void> {
  const trial = async (records: readonly number[]): Promise<string | null> => {
    const included = new Set(records);
    const outcome = await inSavepoint(client, () => merge((record) => included.has(record)), isDataError, {
      rollBack: true,
    });
    return 'error' in outcome ? outcome.error.message : null;
  };
  const search = async (records: readonly number[]): Promise<boolean> => {
    const error = records.length === 0 ? null : await trial(records);
    if (error === null) return false;
    const middle = records.length >> 1;
    if (middle === 0) return refuse(records, error);
    const first = await search(records.slice(0, middle));
    const second = await search(records.slice(middle));
    return first || second || refuse(await shortestRefused(records, middle), error);
  };
  /**
   * Returns the shortest prefix of `records` that the database refuses. It is known that the first
   * `fine` records are accepted.
   */
  const shortestRefused = async (records: readonly number[], fine: number): Promise<readonly number[]> => {
    let min = fine + 1;
    let max = records.length;
    while (min < max) {
      const middle = (min + max) >> 1;
      if ((await trial(records.slice(0, middle))) === null) min = middle + 1;
      else max = middle;
    }
    return records.slice(0, max);
  };
  const refuse = (records: readonly number[], error: string): boolean => {
    const last = records.at(-1);
    if (last !== undefined) refused.set(last, { kind, message: `The database refuses the record: ${error}` });
    return true;
  };
  await search(all.filter((record) => !refused.has(record)));
}
