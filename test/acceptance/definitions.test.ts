import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { packageRoot } from '../../src/package-root.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type Finished, type RunOptions, runCli } from './cli.ts';

const sample = join(packageRoot, 'docs', 'samples', 'definitions.yaml');

interface Result {
  readonly environment: string;
  readonly dry_run: boolean;
  readonly written: boolean;
  readonly blocked_by: readonly string[];
  readonly changes: Readonly<
    Record<string, { added: string[]; changed: object[]; removed: string[]; unchanged: number }>
  >;
}

let dataDir: string;
let database: TestDatabase;
/** On a server that runs already: commands.test.ts has commands start the embedded one. */
const sluice = (args: readonly string[], options: RunOptions = {}): Promise<Finished> =>
  runCli([...args, '--data-dir', dataDir], { env: { DATABASE_URL: database.url }, ...options });
const definitions = (...args: string[]): Promise<Finished> => sluice(['definitions', ...args]);
const json = <T>({ stdout }: Finished): T => JSON.parse(stdout) as T;

async function file(name: string, text: string): Promise<string> {
  const path = join(dataDir, name);
  await writeFile(path, text);
  return path;
}

beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-definitions-'));
  await sluice(['env', 'create', 'staging']);
});
afterAll(async () => {
  await database.drop();
  await rm(dataDir, { recursive: true, force: true, maxRetries: 40, retryDelay: 50 });
});

describe('sluice definitions', () => {
  test('apply --dry-run shows what would come, and writes nothing', async () => {
    const dry = await definitions('apply', sample, '--dry-run');
    expect(dry.code).toBe(0);
    expect(dry.stdout).toContain('+ segments  power-users\n');
    expect(dry.stdout).toMatch(/^segments +8 +0 +0 +0$/m);
    expect(dry.stderr).toContain('Dry run: nothing was written.');
    expect(json(await definitions('show', '--json'))).toMatchObject({ segments: [] });
  });

  test('apply makes it so, and the second time has nothing to do', async () => {
    const first = json<Result>(await definitions('apply', sample, '--json'));
    expect(first).toMatchObject({ environment: 'default', dry_run: false, written: true, blocked_by: [] });
    expect(first.changes['surveys']).toEqual({
      added: ['nps', 'onboarding'],
      changed: [],
      removed: [],
      unchanged: 0,
    });
    const second = await definitions('apply', sample);
    expect(second.code).toBe(0);
    expect(second.stdout).toMatch(/^segments +0 +0 +0 +8$/m);
    expect(second.stdout).not.toMatch(/^[+~-] /m);
    expect(second.stderr).toContain('Nothing to do: environment default has these definitions already.');
    expect(json<Result>(await definitions('apply', sample, '--json')).written).toBe(false);
  });

  test('show has a table for each kind, with ids', async () => {
    const { stdout } = await definitions('show');
    for (const kind of ['segments', 'surveys', 'embeds', 'flows', 'resource center modules', 'features'])
      expect(stdout).toMatch(new RegExp(`^${kind}$`, 'm'));
    expect(stdout).toMatch(/^ *\d+ {2}staff +Our own people +exclusion /m);
    expect(stdout).toMatch(/^api-access +API access +beta_feature$/m);
  });

  test('segments preview counts who is in one and shows the first, by key or id', async () => {
    const users = await file('users.csv', 'user_id,plan\nu3,starter\nu1,free\nu2,business\nu4,\n');
    await sluice(['import', users]);
    const preview = (...args: string[]): Promise<Finished> => sluice(['segments', 'preview', ...args]);
    const shown = await preview('paying-users');
    expect(shown).toMatchObject({ code: 0, stdout: 'Paying users (paying-users): 2 users\n  u2\n  u3\n' });
    const { segments } = json<{ segments: { id: number; key: string }[] }>(
      await definitions('show', '--json'),
    );
    const id = segments.find(({ key }) => key === 'paying-users')?.id;
    const byId = await preview(String(id), '--sample', '1', '--json');
    expect(json(byId)).toEqual({ id, key: 'paying-users', users: 2, sample: ['u2'] });
    const unknown = await preview('nobody');
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain('There is no segment "nobody"');
  });

  test('export writes a file that makes the same definitions elsewhere, in both formats', async () => {
    const yaml = await definitions('export');
    expect(yaml).toMatchObject({ code: 0, stderr: '' });
    const written = await definitions('export', '--format', 'json');
    expect(json(written)).toEqual(parse(yaml.stdout));
    const piped = await sluice(['definitions', 'apply', '-', '--env', 'staging', '--json'], {
      input: yaml.stdout,
    });
    expect(json<Result>(piped)).toMatchObject({ environment: 'staging', written: true });
    expect((await definitions('export', '--env', 'staging')).stdout).toBe(yaml.stdout);
    const path = await file('definitions.json', written.stdout);
    expect(json<Result>(await definitions('apply', path, '--json')).written).toBe(false);
  });

  test('protected segments are only removed by force', async () => {
    const path = await file('less.yaml', 'embeds: []\n');
    const refused = await definitions('apply', path, '--env', 'staging');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(
      'Nothing was written: the file lacks protected segments (power-users, staff).',
    );
    const told = await definitions('apply', path, '--env', 'staging', '--dry-run', '--json');
    expect([told.code, json<Result>(told).blocked_by]).toEqual([2, ['power-users', 'staff']]);
    const forced = await definitions('apply', path, '--env', 'staging', '--force');
    expect(forced.code).toBe(0);
    expect(forced.stdout).toMatch(/^segments +0 +0 +8 +0$/m);
    // The other environment has its own.
    expect(json<{ segments: object[] }>(await definitions('show', '--json')).segments).toHaveLength(8);
  });
});

describe('what cannot be applied', () => {
  test('a wrong file is refused with the line and column of every problem, before a database is looked for', async () => {
    const path = await file(
      'wrong.yaml',
      'segments:\n  - title: A\n    is_hidden: maybe\n    definition: { plan: pro }\n',
    );
    const env = { DATABASE_URL: 'postgres://127.0.0.1:1/nowhere' };
    const refused = await runCli(['definitions', 'apply', path], { env });
    expect(refused.code).toBe(2);
    expect(refused.stdout).toBe('');
    expect(refused.stderr.split('\n')).toEqual([
      `sluice: ${path} has 3 problems; nothing was applied.`,
      `${path}:2:5: segments[0].key is missing; a segment must have it`,
      `${path}:3:16: segments[0].is_hidden must be true or false, not "maybe"`,
      expect.stringContaining(`${path}:4:17: segments[0].definition has none of all, any`),
      '',
    ]);
    const told = await runCli(['definitions', 'apply', path, '--json'], { env });
    expect(told.code).toBe(2);
    expect(json(told)).toMatchObject({
      problem_count: 3,
      problems: [{ line: 2, column: 5, path: 'segments[0].key' }, { line: 3 }, { line: 4 }],
    });
  });

  test.each([
    [['apply', '/no/such/file.yaml'], 'There is no file /no/such/file.yaml.'],
    [['apply', sample, '--env', 'nowhere'], 'There is no environment nowhere.'],
  ])('%j is exit code 2', async (args, message) => {
    const refused = await definitions(...args);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(message);
  });
});
