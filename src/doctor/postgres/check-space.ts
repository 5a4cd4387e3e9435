import type { ClientBase } from 'pg';
import { isDiskFull } from '../../postgres/sqlstate.ts';
import { roomAdvice } from '../check.ts';
import { type Finding, failed, ok } from '../finding.ts';

/** More than a page, so that the server has to ask its disk for room. */
const probe = `
  begin;
  create temporary table sluice_doctor_space on commit drop as
    select repeat(n::text, 100) as filler from generate_series(1000, 1999) as n;
  rollback`;

/** Whether the server has room for a table that nobody else sees, and that is gone at once. What is free it does not say. */
export async function checkSpace(client: ClientBase): Promise<Finding[]> {
  const check = 'postgres disk';
  try {
    await client.query(probe);
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    if (isDiskFull(error)) return [failed(check, 'the disk of the database is full', roomAdvice)];
    // It may not make temporary tables, or takes no writes: told by other checks where it matters.
  }
  return [ok(check, 'there is room for a small table')];
}
