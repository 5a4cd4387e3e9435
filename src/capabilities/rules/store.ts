import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import type { ClientBase } from 'pg';
import { lockEnvironment } from '../../access/environment-store.ts';
import type { Entity, PropertyEntity } from '../../domain/entity.ts';
import type { ActContext } from '../../postgres/acts.ts';
import { camel } from '../../postgres/columns.ts';
import { countOf, type Database, findValue, rowsOf, selectWhere } from '../../postgres/database.ts';
import { awaitEarlierWriters, beginUse } from '../../postgres/uses.ts';
import { keepNoText, PERSONAL_USE } from '../personal/personal.ts';
import { type CountedFinding, personalActionsOf, type Remedy, type RulesDocument } from './document.ts';

declare module '../../postgres/columns.ts' {
  interface Known {
    load_findings: { entity: PropertyEntity; otherwise: Remedy };
    rules: { document: RulesDocument };
  }
}

export const RULES_USE = 'rules';

export interface AppliedRules {
  readonly version: number;
  readonly document: RulesDocument;
  readonly appliedAt: Date;
  /** Id of the API key with which the rules were applied. `null` for the command line. */
  readonly appliedBy: string | null;
}

const columns = camel('version', 'document', 'applied_at', 'applied_by');

/** Returns `null` if the environment has never had rules. */
export async function readRules(db: Database, environmentId: number): Promise<AppliedRules | null> {
  const row = await selectWhere(db, 'rules', { environmentId })
    .select(columns)
    .orderBy('version', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row ?? null;
}

export async function applyRules(
  { db, acts }: ActContext,
  environmentId: number,
  document: RulesDocument,
  appliedBy: string | null,
): Promise<AppliedRules> {
  const applied = await db.transaction().execute(async (transaction) => {
    await lockEnvironment(transaction, environmentId);
    const before = await readRules(transaction, environmentId);
    if (before !== null && isDeepStrictEqual(before.document, document)) return before;
    return insertRules({ db: transaction, acts }, environmentId, document, { before, appliedBy });
  });
  await rulesCommitted(db, applied);
  return applied;
}

/** Call `rulesCommitted` after the commit. */
export async function insertRules(
  { db: transaction, acts }: ActContext,
  environmentId: number,
  document: RulesDocument,
  { before, appliedBy }: { readonly before: AppliedRules | null; readonly appliedBy: string | null },
): Promise<AppliedRules> {
  await beginUse(transaction, environmentId, RULES_USE);
  if (personalActionsOf(document).length > 0) await beginUse(transaction, environmentId, PERSONAL_USE);
  const added = await transaction
    .insertInto('rules')
    .values({
      environment_id: environmentId,
      version: (before?.version ?? 0) + 1,
      document: JSON.stringify(document),
      applied_by: appliedBy,
    })
    .returning(columns)
    .executeTakeFirstOrThrow();
  const details = { version: added.version };
  await acts.record(transaction, { action: 'rules.applied', environmentId, thing: null, details });
  return added;
}

/** If these are the first rules of the environment, waits until all writers know of them. */
export async function rulesCommitted(db: Database, { version }: AppliedRules): Promise<void> {
  if (version === 1) await awaitEarlierWriters(db, new AbortController().signal);
}

/** Must be called in the transaction that accepts the load. */
export async function addLoadRules(db: Database, loadId: number, environmentId: number): Promise<void> {
  const rules = await readRules(db, environmentId);
  if (rules === null) return;
  await sql`insert into load_rules values (${loadId}, ${environmentId}, ${rules.version})`.execute(db);
  if (personalActionsOf(rules.document).length > 0) await keepNoText(db, loadId);
}

/** Returns `null` if the load was accepted without rules. */
export function readLoadRules(db: Database, loadId: number): Promise<RulesDocument | null> {
  return findValue<RulesDocument>(db)`
    select document from load_rules join rules using (environment_id, version) where load_id = ${loadId}`;
}

export const versionOfLoad = sql`(select version from load_rules r where r.load_id = loads.load_id)`;

/** Cannot deadlock, because the transaction has already locked the load's row. */
export async function addFindings(
  db: Database,
  loadId: number,
  findings: readonly CountedFinding[],
): Promise<void> {
  if (findings.length === 0) return;
  await db
    .insertInto('load_findings')
    .values(
      findings.map(({ property, ...finding }) => ({ load_id: loadId, property: property ?? '', ...finding })),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['load_id', 'entity', 'property', 'rule'])
        .doUpdateSet({ records: sql<number>`load_findings.records + excluded.records` }),
    )
    .execute();
}

export async function forgetFindings(db: Database, loadId: number): Promise<void> {
  await sql`delete from load_findings where load_id = ${loadId}`.execute(db);
}

export const findingsOfLoad = sql`(
  select coalesce(
    json_agg(
      json_build_object(
        'entity', f.entity, 'property', nullif(f.property, ''), 'rule', f.rule, 'otherwise', f.otherwise, 'records', f.records
      )
      order by f.entity, f.property, f.rule
    ),
    '[]'
  )
  from load_findings f
  where f.load_id = loads.load_id
)`;

export interface StoredProperties {
  /** `readStored` continues after this key. */
  readonly key: readonly string[];
  readonly eventName: string | null;
  /** JSON in which numbers keep all their digits. */
  readonly metadata: string;
}

const keysOf = {
  users: ['user_id'],
  companies: ['company_id'],
  events: ['inserted_at', 'event_id', 'user_id'],
} as const;

export function readStored(
  db: Database,
  environmentId: number,
  entity: PropertyEntity,
  after: StoredProperties | null,
  limit: number,
): Promise<StoredProperties[]> {
  const columns = sql.join(keysOf[entity].map((column) => sql.ref(column)));
  return rowsOf<StoredProperties>(db)`
    select
      array[${sql.join(keysOf[entity].map((column) => sql`${sql.ref(column)}::text`))}] as key,
      ${entity === 'events' ? sql.ref('event_name') : sql`null::text`} as "eventName",
      metadata::text as metadata
    from ${sql.table(entity)}
    where environment_id = ${environmentId}
      ${after === null ? sql`` : sql`and (${columns}) > (${sql.join(after.key)})`}
    order by ${columns}
    limit ${limit}`;
}

export function countRepeated(
  db: Database,
  environmentId: number,
  entity: Entity,
  property: string,
): Promise<number> {
  return countOf(db)`
    select coalesce(sum(profiles), 0)::bigint as count
    from (
      select count(*) as profiles
      from ${sql.table(entity)}
      where environment_id = ${environmentId} and metadata -> ${property} <> 'null'
      group by metadata -> ${property}
      having count(*) > 1
    ) repeated`;
}

export async function listHashingEnvironments(client: Pick<ClientBase, 'query'>): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`
    select e.name
    from sluice.environments e
    cross join lateral (
      select document from sluice.rules r where r.environment_id = e.environment_id order by version desc limit 1
    ) current
    where document @? '$.*.properties.*.personal ? (@ == "hash")'
    order by e.name`);
  return rows.map(({ name }) => name);
}
