import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Finished, runCli, temporaryFolder } from '../../../acceptance/cli.ts';

const look = async (...args: readonly string[]): Promise<Finished> => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'kunden.csv'), 'Kunden-Nr;Name\n17;"Müller; Anna"\n;Niemand\n');
  const finished = await runCli(['inspect', 'kunden.csv', ...args], { cwd: folder });
  expect(await readdir(folder)).toEqual(['kunden.csv']);
  return finished;
};

// proves: inspection
test('`sluice inspect` describes a file, its rejects and the --map that may help', async () => {
  const { code, stdout, stderr } = await look();
  expect(code).toBe(2);
  expect(stdout).toContain('semicolons between cells');
  expect(stdout).toMatch(/Kunden-Nr +user_id +string +1 +1 +17 +its name looks like that of a user_id/);
  expect(stdout).toMatch(/1 +identify_user +17 +\{"Name":"Müller; Anna"\}/);
  expect(stdout).toMatch(/3 +missing_id +user_id is empty +;Niemand/);
  expect(stderr).toContain('Shown is what --map "Kunden-Nr=user_id" would come to.');
});
