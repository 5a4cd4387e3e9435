import type { ClientBase } from 'pg';
import { readMigrationState } from '../../postgres/migration-state.ts';
import { type Finding, failed, ok, warning } from '../finding.ts';

export async function checkMigrations(client: ClientBase): Promise<Finding[]> {
  const check = 'migrations';
  const { pending, unknown, edited } = await readMigrationState(client);
  if (edited.length > 0) {
    const advice =
      'Install the version of sluice that the database was migrated by; this one does not start on it.';
    return [failed(check, `applied with another text: ${edited.join(', ')}`, advice)];
  }
  if (unknown.length > 0) {
    const advice = 'Install that version here too, before this program writes to the database.';
    return [failed(check, `a newer sluice has migrated the database: ${unknown.join(', ')}`, advice)];
  }
  if (pending.length > 0) {
    const found =
      pending.length > 3 ? `${pending.length} to be applied` : `to be applied: ${pending.join(', ')}`;
    return [warning(check, found, 'The next start applies them, or `sluice migrate` now.')];
  }
  return [ok(check, 'the database is up to date')];
}
