import { sql } from 'kysely';
import { type Database, hasRows } from '../../postgres/database.ts';

export async function addPersonalLoad(db: Database, loadId: number): Promise<void> {
  await sql`insert into personal_loads values (${loadId})`.execute(db);
}

export function isPersonalLoad(db: Database, loadId: number): Promise<boolean> {
  return hasRows(db)`select 1 from personal_loads where load_id = ${loadId}`;
}
