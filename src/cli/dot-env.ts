import { existsSync, readFileSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { parseEnv } from 'node:util';
import { UsageError } from './exit-codes.ts';

const path = '.env';

/**
 * Takes the variables of `.env`, if the working directory has one, into the environment of this process; those that are set
 * already win. Returns the names that came from it.
 * @throws UsageError if it cannot be read.
 */
export function loadDotEnv(): ReadonlySet<string> {
  if (!existsSync(path)) return new Set();
  try {
    const names = Object.keys(parseEnv(readFileSync(path, 'utf8')));
    const added = names.filter((name) => process.env[name] === undefined);
    loadEnvFile(path);
    return new Set(added);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`The file .env of this folder cannot be read: ${why}`);
  }
}
