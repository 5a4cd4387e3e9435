import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { runCli } from './cli.ts';

const leftovers = async (): Promise<string[]> =>
  (await readdir(tmpdir())).filter((name) => name.startsWith('sluice-demo-'));

test('the demo runs whatever the environment says, balances, and removes all it made', async () => {
  const before = await leftovers();
  const env = { DATABASE_URL: 'nonsense', REDIS_URL: 'nonsense', PORT: 'nonsense' };
  const done = await runCli(['demo', '--users', '3000', '--companies', '100', '--events', '4000'], { env });
  expect(done, done.stderr).toMatchObject({ code: 0 });
  expect(done.stdout).toContain(
    '3,058 read = 3,000 inserted + 0 updated + 0 unchanged + 50 superseded + 8 rejected',
  );
  for (const code of ['missing_id', 'wrong_field_count', 'invalid_quote', 'nul_character', 'id_too_long']) {
    expect(done.stdout).toContain(code);
  }
  expect(done.stdout).toMatch(/completed after \d+ ms/);
  // The sample's segments ask of what the demo's users have.
  expect(done.stdout).toMatch(/^ +\d+ {2}Paying users +[1-9],?\d+$/m);
  expect(done.stdout).toContain('4,000 answered 202, each after its commit');
  expect(done.stdout).toMatch(/^ +users\.ndjson +[1-9]\d* +[\d.]+ \w+ {2}[0-9a-f]{16}…$/m);
  expect(done.stdout).toMatch(/^ +events\.ndjson +[1-9]\d* /m);
  expect(done.stdout).toMatch(/^ +events\.ndjson +\{"event_id":"[^"]+","event_type":"track","event_name":"/m);
  expect(done.stdout).toMatch(/^ +manifest\.json +\{"application":\{"name":"sluice"/m);
  // One step, one message: nothing that only says how far it is.
  expect(done.stderr).not.toMatch(/rows\/s|events\/s|%/);
  expect(done.stdout.split('\n').length).toBeLessThan(80);
  expect(await leftovers()).toEqual(before);
});
