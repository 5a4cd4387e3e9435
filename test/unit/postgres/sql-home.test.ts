import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../../src/package-root.ts';

/** Statements elsewhere ask a server about itself, copy a whole database, or are compiled from what a caller defines. */
const others = [
  /^src\/embedded-postgres\//,
  /^src\/capabilities\/[a-z]+\/([a-z]+-)?store\.ts$/,
  /^src\/health\/postgres\.ts$/,
  /^src\/cli\/(session|service\/preflight)\.ts$/,
  /^src\/segments\/compile-[a-z]+\.ts$/,
  /^src\/export\/(filter|write\/[a-z-]+)\.ts$/,
];
const statement =
  /\bsql(?:<[^`]*>)?`|\b(?:client|pool|watch|connection)\.query[(<]|\.(?:selectFrom|insertInto|updateTable|deleteFrom)\(/;

test('SQL stands in src/postgres and in the stores of capabilities; elsewhere only where it is compiled, or of another database', () => {
  const files = ['src', 'jobs'].flatMap((folder) =>
    readdirSync(join(packageRoot, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name}`),
  );
  const holders = files.filter(
    (file) =>
      !file.startsWith('src/postgres/') &&
      !others.some((pattern) => pattern.test(file)) &&
      statement.test(readFileSync(join(packageRoot, file), 'utf8')),
  );
  expect(holders).toEqual([]);
});
