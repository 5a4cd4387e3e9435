import type { ClientBase } from 'pg';
import { type Finding, failed, ok } from '../finding.ts';

interface Row {
  readonly role: string;
  readonly mayCreate: boolean;
  /** Those of our schemas that are there and belong to somebody whose rights we have not. */
  readonly foreign: string[];
  readonly missing: number;
}

/** Migrations create the schemas, and change what is in them: that takes their owner. */
export async function checkPrivileges(client: ClientBase, queueInPostgres: boolean): Promise<Finding[]> {
  const schemas = queueInPostgres ? ['sluice', 'bullmq'] : ['sluice'];
  const { rows } = await client.query<Row>(
    `
    select
      current_user as role,
      has_database_privilege(current_database(), 'create') as "mayCreate",
      array(
        select nspname::text
        from pg_namespace
        where nspname = any ($1) and not pg_has_role(nspowner, 'usage')
      ) as foreign,
      (
        select cardinality($1::text[]) - count(*)
        from pg_namespace
        where nspname = any ($1)
      )::int as missing`,
    [schemas],
  );
  const { role = '', mayCreate = false, foreign = [], missing = 0 } = rows[0] ?? {};
  const check = 'postgres privileges';
  if (foreign.length > 0) {
    const advice = 'Connect as their owner, or grant this role membership in it.';
    return [failed(check, `role ${role} does not own schema ${foreign.join(' and ')}`, advice)];
  }
  if (missing > 0 && !mayCreate) {
    const advice = `As its owner: grant create on database … to ${role}.`;
    return [failed(check, `role ${role} may not create schemas in this database`, advice)];
  }
  return [ok(check, `role ${role} ${missing > 0 ? 'may create what is missing' : 'owns its schemas'}`)];
}
