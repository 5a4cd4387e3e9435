import type { ClusterContext } from './cluster-context.ts';
import { databaseName, roleName } from './connection.ts';
import { EmbeddedPostgresError } from './errors.ts';
import { ensurePassword } from './password.ts';
import { dataArgument, runProgram } from './run-program.ts';

/**
 * Role and database in a fresh data directory. The role is no superuser; it may create databases,
 * because tests give each file one of its own.
 */
export async function createRoleAndDatabase(context: ClusterContext, data: string): Promise<void> {
  const password = await ensurePassword(context.layout.password);
  await runSingleUser(context, data, [
    `create role ${roleName} login createdb password '${password}'`,
    `grant pg_monitor, pg_checkpoint to ${roleName}`,
    `create database ${databaseName} owner ${roleName}`,
  ]);
}

/** A new password for data whose password file was lost, for example when only PGDATA came back from a backup. */
export async function resetPassword(context: ClusterContext): Promise<void> {
  const password = await ensurePassword(context.layout.password);
  await runSingleUser(context, context.layout.data, [`alter role ${roleName} password '${password}'`]);
}

/**
 * In single-user mode: nothing listens yet and no login is needed. It takes one statement a line.
 * Our passwords have only letters, digits, "-" and "_", so they need no escaping; they are no arguments,
 * which every user of the machine could read.
 */
async function runSingleUser(
  { binaries, account }: ClusterContext,
  data: string,
  statements: readonly string[],
): Promise<void> {
  const args = ['--single', '-D', dataArgument(account, data), '-c', 'exit_on_error=on', 'postgres'];
  const input = `${statements.join('\n')}\n`;
  const { code, output } = await runProgram(binaries.postgres, args, { account, cwd: data, input });
  if (code !== 0) throw new EmbeddedPostgresError(`Preparing the database failed: ${output.trim()}`);
}
