import { sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import type { Database } from '../database.ts';
import type { MergeScope } from './expressions.ts';
import { incomingTable } from './incoming.ts';

/**
 * A row that removes something and turned out to be new was inserted with its nulls (ON CONFLICT knows no other
 * values than those to be inserted). Takes them out before anybody can see them.
 */
export async function settleRemovals(db: Database, entity: Entity, scope: MergeScope): Promise<void> {
  const company = entity === 'users' ? sql`, company_id = nullif(p.company_id, '')` : sql``;
  await sql`
    update ${sql.table(entity)} p
    set metadata = sluice.without_nulls(p.metadata)${company}
    where p.environment_id = ${scope.environmentId}
      and p.${sql.ref(idColumn[entity])} = any (
        array(select key from ${sql.table(incomingTable[entity])} where flags & 1 = 1)
      )
      and p.load_id = ${scope.loadId}`.execute(db);
}
