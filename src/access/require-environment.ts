import { UsageError } from '../cli/errors.ts';
import type { System } from '../context.ts';
import { defaultEnvironmentName, type Environment } from '../domain/caller.ts';
import { createEnvironment, findEnvironment } from './environment-store.ts';

/** The environment that a command is about. `default` is made if it is not there yet; it gets its key at the first start. */
export async function requireEnvironment({ db }: Pick<System, 'db'>, name: string): Promise<Environment> {
  const known = await findEnvironment(db, name);
  if (known !== null) return known;
  if (name !== defaultEnvironmentName) {
    throw new UsageError(`There is no environment ${name}. Create it with \`sluice env create ${name}\`.`);
  }
  try {
    return await createEnvironment(db, name);
  } catch (error) {
    // Another process created it first.
    const theirs = await findEnvironment(db, name);
    if (theirs !== null) return theirs;
    throw error;
  }
}
