import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTerminal } from '../../src/cli/terminal.ts';
import { createProgram } from '../../src/processes/program.ts';
import { createTestDatabase, type TestDatabase } from '../support/servers/postgres.ts';
import { type Finished, runCli, startCli } from './cli.ts';
import { wrongCommands } from './documented-commands.ts';

let dataDir: string;
let database: TestDatabase;
/**
 * Runs a command on a database server that is already running. Other tests start the embedded
 * server.
 */
const sluice = (...args: string[]): Promise<Finished> =>
  runCli([...args, '--data-dir', dataDir], { env: { DATABASE_URL: database.url } });
const json = <T>({ stdout }: Finished): T => JSON.parse(stdout) as T;

beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-commands-'));
});
afterAll(async () => {
  await database.drop();
  await rm(dataDir, { recursive: true, force: true, maxRetries: 40, retryDelay: 50 });
});

describe('sluice env and keys', () => {
  test('an environment is created once, and listed', async () => {
    expect(json(await sluice('env', 'create', 'staging', '--json'))).toMatchObject({ name: 'staging' });
    expect(json(await sluice('env', 'list', '--json'))).toEqual([
      {
        name: 'staging',
        app_token: expect.stringMatching(/^NX-[0-9A-Z]{8}$/),
        allowed_origins: [],
        export_layout: 'datasets',
      },
    ]);
    const twice = await sluice('env', 'create', 'staging');
    expect(twice.code).toBe(2);
    expect(twice.stderr).toContain('staging exists');
  });

  test('an environment has a layout for exports that name none', async () => {
    await sluice('env', 'create', 'streamed');
    const layout = (...flags: string[]) => sluice('env', 'layout', '--env', 'streamed', ...flags);
    expect((await layout()).stdout).toBe('datasets\n');
    expect(json(await layout('--set', 'stream', '--json'))).toEqual({ export_layout: 'stream' });
    expect((await layout('--set', 'rows')).code).toBe(2);
    const out = join(dataDir, 'streamed');
    expect(json(await sluice('export', '--env', 'streamed', '--out', out, '--json'))).toMatchObject({
      job: { status: 'completed' },
    });
    expect(await readdir(out)).toContain('stream.ndjson.gz');
  });

  // proves: browser-keys
  test('pages are allowed by their origins only, and a key for them has no other scope', async () => {
    await sluice('env', 'create', 'shop');
    const origins = (...flags: string[]) => sluice('env', 'origins', '--env', 'shop', '--json', ...flags);
    const site = 'https://shop.example.com';
    expect(json(await origins('--set', `${site}, http://localhost:3000`))).toEqual([
      { origin: site },
      { origin: 'http://localhost:3000' },
    ]);
    for (const wrong of ['*', 'shop.example.com', `${site}/`, `${site}/path`, 'null', 'file:///x']) {
      const { code, stderr } = await origins('--set', wrong);
      expect([wrong, code, stderr]).toEqual([wrong, 2, expect.stringContaining('https://app.example.com')]);
    }
    expect(json(await origins('--set', ''))).toEqual([]);
    const both = await sluice('keys', 'create', '--env', 'shop', '--scopes', 'browser,read');
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('may only have browser')]);
  });

  test('a new key is shown once, alone on standard output, and lists never show it', async () => {
    const flags = ['--label', 'nightly', '--scopes', 'import,read', '--expires', '90d'];
    const created = await sluice('keys', 'create', ...flags);
    expect(created.stdout).toMatch(/^slk_\w{12}_\w{40}\n$/);
    const listed = await sluice('keys', 'list', '--json');
    expect(json(listed)).toMatchObject([{ label: 'nightly', scopes: ['import', 'read'], status: 'live' }]);
    expect(listed.stdout).not.toContain(created.stdout.trim());
  });
});

describe('the program', () => {
  const everyCommand = () =>
    createProgram({ processEnv: {}, fromDotEnv: new Set(), terminal: createTerminal({}), entry: '' }, []);

  // proves: docs-true
  test('every command and flag in the docs exists', async () => {
    expect(wrongCommands(await everyCommand())).toEqual([]);
  });

  test('every command has help with examples, which fits 80 columns', async () => {
    const program = await everyCommand();
    const commands = program.commands.flatMap((command) => [command, ...command.commands]);
    expect(commands.length).toBeGreaterThan(30);
    for (const command of [program, ...commands]) {
      let help = '';
      command.configureOutput({
        getOutHelpWidth: () => 80,
        writeOut: (text) => {
          help += text;
        },
      });
      command.outputHelp();
      const wide = help.split('\n').filter((line) => [...line].length > 80);
      expect(wide, command.name()).toEqual([]);
      if (command !== program) expect(help, command.name()).toMatch(/Examples:\n {2}\$ /);
    }
    const shown = await runCli(['import', '--help']);
    expect(shown.stdout).not.toContain('(default: null)');
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('Examples:\n  $ ') });
  });

  test('a reader of a command may leave early without an error', async () => {
    const env = { DATABASE_URL: database.url };
    expect(await startCli(['env', 'list'], { env, deaf: true }).finished).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
  });

  test('a database that is away is reported in a sentence, without a stack or a password', async () => {
    const env = { DATABASE_URL: 'postgres://me:s3cret@127.0.0.1:1/x' };
    const failed = await runCli(['jobs', 'list'], { env });
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(/^sluice: The database does not answer\. .*\n$/);
    expect(failed.stderr).not.toContain('s3cret');
  });
});
