import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../database.ts';
import { keyHash, type MergeScope } from './expressions.ts';

/**
 * Creates the companies that the batch's users belong to, where they are new. In key order, like every write.
 * Call it when the chunk's own records of companies are merged: it is they that count as inserted. For those that
 * other chunks hold, the new ones are noted, as found unchanged by no record. `named` is a query with one column,
 * `company`; by default those that the batch in `incoming_users` names.
 */
export async function createCompanies(
  db: Database,
  scope: MergeScope,
  named: RawBuilder<unknown> = namedByBatch,
): Promise<void> {
  const { environmentId } = scope;
  const create = sql`
    insert into companies (environment_id, company_id)
    select ${environmentId}::int, named.company
    from (${named}) named
    where (
      select true
      from companies c
      where c.environment_id = ${environmentId} and c.company_id = named.company
    ) is null
    order by named.company
    on conflict (environment_id, company_id) do nothing`;
  await (scope.noteKeys ? noted(create, scope) : create).execute(db);
}

const namedByBatch = sql`select distinct company from incoming_users where company <> ''`;

const noted = (create: RawBuilder<unknown>, scope: MergeScope) => sql`
    with created as (${create} returning company_id)
    insert into load_chunk_keys (load_id, chunk_no, entity, unchanged)
    select ${scope.loadId}, ${scope.chunkNo}, 'companies', array_agg(${keyHash(sql.ref('company_id'))} | 3)
    from created
    having count(*) > 0
    on conflict (load_id, chunk_no, entity) do update set
      unchanged = load_chunk_keys.unchanged || excluded.unchanged`;
