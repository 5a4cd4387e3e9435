import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../../src/base/package-root.ts';

/**
 * Files that may contain SQL: the stores of nouns, the merge of batches, and the compilers of
 * definitions.
 */
const homes = [
  /^src\/postgres\//,
  /\/([a-z]+-)*store\.ts$/,
  /^src\/load\/(merge\/[a-z-]+|plans\/plan-batch)\.ts$/,
  /^src\/lookups\/segments\/compile-[a-z]+\.ts$/,
  /^src\/export\/(filter|write\/[a-z-]+)\.ts$/,
];
/** Files that query the PostgreSQL server itself. */
const serverQueries = [
  'src/telemetry/health/postgres.ts',
  'src/cli/session.ts',
  'src/processes/preflight.ts',
];
const statement =
  /\bsql(?:<[^`]*>)?`|\b(?:client|pool|watch|connection)\.query[(<]|\.(?:selectFrom|insertInto|updateTable|deleteFrom)\(/;

test('only stores, merges and compilers contain SQL', () => {
  const files = ['src', 'jobs'].flatMap((folder) =>
    readdirSync(join(packageRoot, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name}`),
  );
  const holders = files.filter(
    (file) =>
      !homes.some((home) => home.test(file)) &&
      !serverQueries.includes(file) &&
      statement.test(readFileSync(join(packageRoot, file), 'utf8')),
  );
  expect(holders).toEqual([]);
});
