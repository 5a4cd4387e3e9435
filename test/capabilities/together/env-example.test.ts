import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../support/servers/run-command.ts';

test('.env.example lists every setting with its default and meaning, as `sluice config --example` prints it', async () => {
  const example = await readFile(resolve(import.meta.dirname, '../../../.env.example'), 'utf8');
  expect(await runCommand({ variables: {} }, 'config', '--example')).toBe(example);
});
