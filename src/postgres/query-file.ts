import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { packageRoot } from '../package-root.ts';

/** A statement of sql/queries, prepared once per connection under its file's name. */
export interface QueryFile {
  readonly name: string;
  readonly text: string;
}

export function readQuery(name: string): QueryFile {
  return { name, text: readFileSync(join(packageRoot, 'sql', 'queries', `${name}.sql`), 'utf8') };
}

export async function runQuery(
  connection: pg.Pool | pg.PoolClient,
  { name, text }: QueryFile,
  values: unknown[],
): Promise<void> {
  await connection.query({ name, text, values });
}
