import { UsageError } from '../cli/errors.ts';
import type { System } from '../context.ts';
import { defaultEnvironmentName, type Environment } from '../domain/caller.ts';
import { addEnvironment } from './acts.ts';
import { findEnvironment } from './environment-store.ts';

/** Creates `default` if it is missing. @throws UsageError if another environment is missing */
export async function requireEnvironment(
  system: Pick<System, 'db' | 'acts'>,
  name: string,
): Promise<Environment> {
  const { db } = system;
  const existing = await findEnvironment(db, name);
  if (existing !== null) return existing;
  if (name !== defaultEnvironmentName) {
    throw new UsageError(`There is no environment ${name}. Create it with \`sluice env create ${name}\`.`);
  }
  try {
    return await addEnvironment(system, name);
  } catch (error) {
    const other = await findEnvironment(db, name);
    if (other !== null) return other;
    throw error;
  }
}
