/** The SQL of `sluice.unique_values`: which profile has which value that no two may have. */
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { type Entity, entities, idColumn } from '../../domain/entity.ts';
import { type Rules, type TakenValue, type UniqueProperty, uniqueProperties } from '../../domain/rules.ts';
import { type Database, inSavepoint, inTransaction } from '../database.ts';
import { readRules } from './rules.ts';

/** Thrown when records of a transaction bring values that other profiles have; it must be rolled back. */
export class ValuesTaken extends Error {
  override readonly name = 'ValuesTaken';
  readonly values: readonly TakenValue[];

  constructor(values: readonly TakenValue[]) {
    super('other profiles have values that are to be unique');
    this.values = values;
  }
}

export interface Written {
  /** Profiles may have something newer than what the records brought. */
  readonly dated: boolean;
  /** Selects profiles with properties that they got, in the order of their records: `key, properties, place`. */
  readonly profiles: (entity: Entity, names: readonly string[]) => RawBuilder<unknown> | null;
}

/**
 * Claims the values of unique properties that the transaction has given to profiles. What counts is the latest version of the rules:
 * whoever applies them waits for those who began before. To be called when all profiles are written.
 * @throws ValuesTaken, with `otherwise` in place of what the rules say
 */
export async function requireOwn(
  db: Database,
  environmentId: number,
  written: Written,
  otherwise?: 'strip',
): Promise<void> {
  const taken = await claimWritten(db, environmentId, written);
  if (taken.length > 0)
    throw new ValuesTaken(otherwise === undefined ? taken : taken.map((each) => ({ ...each, otherwise })));
}

/** Claims as `requireOwn` does, and returns the values that others have. */
async function claimWritten(db: Database, environmentId: number, written: Written): Promise<TakenValue[]> {
  const rules = await readRules(db, environmentId);
  return rules === null ? [] : claim(db, environmentId, uniqueProperties(rules.document), written);
}

/** Claims values of `unique` properties. Users come before companies, so that two writers never wait for each other crosswise. */
async function claim(
  db: Database,
  environmentId: number,
  unique: readonly UniqueProperty[],
  { profiles: written, dated }: Written,
): Promise<TakenValue[]> {
  const taken: TakenValue[] = [];
  for (const entity of entities) {
    const own = unique.filter((each) => each.entity === entity);
    const names = own.map(({ property }) => property);
    const profiles = own.length === 0 ? null : written(entity, names);
    if (profiles === null) continue;
    const { rows } = await sql<{ property: string; value: string; ids: string[] }>`
      select c.property, c.value::text as value, c.ids
      from (
        select
          array_agg(w.key order by w.place) as keys,
          array_agg(n.name order by w.place) as names,
          array_agg(w.properties -> n.name order by w.place) as values
        from (${profiles}) w
        cross join unnest(${names}::text[]) n (name)
        where w.properties -> n.name <> 'null'
      ) given
      cross join lateral claim_values(${environmentId}, ${entity}, given.keys, given.names, given.values, ${dated}) c`.execute(
      db,
    );
    for (const { property, value, ids } of rows) {
      const rule = own.find((each) => each.property === property);
      if (rule !== undefined) taken.push({ ...rule, environmentId, value, ids });
    }
  }
  return taken;
}

/** Values that records of an environment bring: of each `properties` is JSON with one of them. */
export interface Claims {
  readonly environmentId: number;
  readonly unique: readonly UniqueProperty[];
  readonly profiles: { readonly entity: Entity; readonly key: string; readonly properties: string }[];
}

/** Claims as `requireOwn` does, for records of several environments. */
export async function requireClaims(db: Database, claims: readonly Claims[]): Promise<void> {
  const taken = await claimAll(db, claims, true);
  if (taken.length > 0) throw new ValuesTaken(taken);
}

/**
 * Returns the values of records that other profiles have before any record is written; leaves nothing. Where each record takes the value that
 * the one before it gives up, taking one out would bring up the next only, as often as there are records.
 */
export function findTaken(pool: pg.Pool, claims: readonly Claims[]): Promise<readonly TakenValue[]> {
  return inTransaction(pool, async ({ client, db }) => {
    const tried = await inSavepoint(
      client,
      () => claimAll(db, claims, false),
      () => false,
      { undo: true },
    );
    return 'error' in tried ? [] : tried.result;
  });
}

async function claimAll(db: Database, claims: readonly Claims[], dated: boolean): Promise<TakenValue[]> {
  const taken: TakenValue[] = [];
  for (const { environmentId, unique, profiles } of claims.toSorted(
    (a, b) => a.environmentId - b.environmentId,
  )) {
    const written = (entity: Entity) => {
      const own = profiles.filter((each) => each.entity === entity);
      const [keys, properties] = [own.map(({ key }) => key), own.map((each) => each.properties)];
      return sql`
        select
          ${entity === 'users' && !dated ? sql`person_of(${environmentId}, w.key)` : sql`w.key`} as key, w.properties, w.place
        from unnest(${keys}::text[], ${properties}::text[]::jsonb[]) with ordinality w (key, properties, place)`;
    };
    taken.push(...(await claim(db, environmentId, unique, { dated, profiles: written })));
  }
  return taken;
}

/** Selects stored profiles: the keys that `keysOf` gives, a text[], in this order. */
export const storedProfiles = (
  environmentId: number,
  keysOf: (entity: Entity) => RawBuilder<unknown> | Buffer | readonly string[] | null,
): Written => ({
  dated: false,
  profiles: (entity) => {
    const keys = keysOf(entity);
    return keys === null
      ? null
      : sql`
          select k.key, p.metadata as properties, k.place
          from unnest(${keys}::text[]) with ordinality k (key, place)
          cross join lateral (
            select metadata
            from ${sql.table(entity)} p
            where p.environment_id = ${environmentId} and p.${sql.ref(idColumn[entity])} = k.key
            limit 1
          ) p`;
  },
});

/** Claims what is stored of profiles, whoever has it: a value that another one has is shared from then on. */
export async function claimShared(db: Database, environmentId: number, stored: Written): Promise<void> {
  const taken = await claimWritten(db, environmentId, stored);
  if (taken.length === 0) return;
  await sql`
    update unique_values v
    set is_shared = true
    from json_to_recordset(${JSON.stringify(taken)}) as t (entity entity, property text, value text)
    where v.environment_id = ${environmentId} and v.value_hash = value_hash(t.entity, t.property, t.value::jsonb)
      and not v.is_shared`.execute(db);
}

/** Claims for up to `limit` profiles what they have; returns the last of them, or `null` if there are no more. */
export async function claimStored(
  db: Database,
  environmentId: number,
  entity: Entity,
  after: string | null,
  limit: number,
): Promise<string | null> {
  const id = sql.ref(idColumn[entity]);
  const { rows } = await sql<{ key: string }>`
    select ${id} as key
    from ${sql.table(entity)}
    where environment_id = ${environmentId} ${after === null ? sql`` : sql`and ${id} > ${after}`}
    order by ${id}
    limit ${limit}`.execute(db);
  const keys = rows.map(({ key }) => key);
  const stored = storedProfiles(environmentId, (of) => (of === entity ? keys : null));
  await db.transaction().execute((own) => claimShared(own, environmentId, stored));
  return keys.length < limit ? null : (keys.at(-1) ?? null);
}

/** Notes that all values that were stored before these rules are claimed. */
export async function noteClaimed(db: Database, environmentId: number, { version }: Rules): Promise<void> {
  await db
    .updateTable('rules')
    .set({ claimed: true })
    .where((eb) => eb.and({ environment_id: environmentId, version }))
    .execute();
}

/** Deletes the claims of these ids; what others share with them is nobody's. */
export async function deleteClaims(
  db: Database,
  environmentId: number,
  entity: Entity,
  ids: readonly string[],
): Promise<void> {
  await sql`
    with gone as (
      delete from unique_values v
      using unnest(${[...ids]}::text[]) given (id)
      where v.environment_id = ${environmentId} and v.entity = ${entity} and v.owner = given.id
      returning v.*
    )
    insert into unique_values (environment_id, entity, value_hash, owner, is_shared)
    select environment_id, entity, value_hash, '', true from gone where is_shared`.execute(db);
}
