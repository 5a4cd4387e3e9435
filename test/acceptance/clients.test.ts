import { execFile, spawnSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databaseUrl, runCli, type Started, startService, temporaryFolder } from './cli.ts';

const root = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

let service: Started;
const settings = { DATABASE_URL: '' };

beforeAll(async () => {
  settings.DATABASE_URL = await databaseUrl('file');
  service = await startService(await temporaryFolder('file'), settings, { until: 'file' });
});

/** Creates an environment of the service. Returns the variables of a program that uses it. */
async function environment(name: string) {
  await runCli(['env', 'create', name], { env: settings });
  const { stdout } = await runCli(['keys', 'create', '--env', name], { env: settings });
  return {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    SLUICE_URL: service.url,
    SLUICE_API_KEY: stdout.trim(),
  };
}

describe('clients generated from the document', () => {
  let folder = '';

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-clients-'));
    await run(process.execPath, ['--import', 'tsx', 'tools/generate-clients.ts', folder], { cwd: root });
    await cp(join(root, 'test/acceptance/clients'), folder, { recursive: true });
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  // proves: clients
  test('the types of generated clients allow every call of a program', async () => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const checked = await run(process.execPath, [tsc, '-p', folder]).catch((error) => error);
    expect(checked.stdout).toBe('');
  });

  // proves: clients
  test.each([
    ['openapi-typescript with openapi-fetch', 'fetch-program.ts'],
    ['@hey-api/openapi-ts', 'generated-program.ts'],
  ])(
    'a program on %s identifies, tracks, imports a file, waits, reads rejects, exports, lists and looks up',
    async (_, program) => {
      const { stdout } = await run(process.execPath, ['--import', 'tsx', program], {
        cwd: folder,
        env: await environment(program.replace('.ts', '')),
      });
      expect(JSON.parse(stdout)).toEqual({
        statuses: [202, 202],
        counts: [1, 1],
        rejects: ['missing_id'],
        exported: ['ada', 'u1'],
        listed: [true],
        properties: expect.arrayContaining(['logins', 'name', 'tags']),
        refused: ['not_found'],
        explained: true,
      });
    },
  );
});

describe('clients of examples/clients', () => {
  const hasPython = spawnSync('python3', ['--version']).status === 0;
  const clients = [
    ['sh', 'client.sh', true],
    [process.execPath, 'client.mjs', true],
    ['python3', 'client.py', hasPython],
  ] as const;

  // proves: clients
  test.each(clients.filter(([, , isThere]) => isThere))(
    'the example %s %s identifies, tracks, imports a file, names its rejects and downloads an export',
    async (program, name) => {
      const cwd = await temporaryFolder();
      await writeFile(join(cwd, 'users.csv'), 'user_id,name\nu1,Grace Hopper\n,Nobody\n');
      const script = join(root, 'examples/clients', name);
      const { stdout } = await run(program, [script, 'users.csv'], {
        cwd,
        env: await environment(name.replace('.', '-')),
      });
      expect(stdout).toContain('missing_id');
      const lines = (await readFile(join(cwd, 'users.ndjson'), 'utf8')).trim().split('\n');
      const users = lines.map((line) => JSON.parse(line)).map(({ user_id, metadata }) => [user_id, metadata]);
      expect(users.sort()).toEqual([
        ['ada', { name: 'Ada Lovelace', plan: 'pro' }],
        ['u1', { name: 'Grace Hopper' }],
      ]);
    },
  );
});
