import { sql } from 'kysely';
import type { Database } from '../database.ts';

/** Creates the companies that the batch's users belong to, where they are new. In key order, like every write. */
export async function createCompanies(db: Database, environmentId: number): Promise<void> {
  await sql`
    insert into companies (environment_id, company_id)
    select ${environmentId}::int, named.company
    from (select distinct company from incoming_users where company <> '') named
    where (
      select true
      from companies c
      where c.environment_id = ${environmentId} and c.company_id = named.company
    ) is null
    order by named.company
    on conflict (environment_id, company_id) do nothing`.execute(db);
}
