import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { preparedDataDir, runCli, startService, temporaryFolder } from './cli.ts';
import { query } from './service.ts';

describe('in a folder without data', () => {
  // proves: settings
  test.each(['jobs list', 'export --out backup', 'migrate', 'psql'])(
    'sluice %s in a folder without data names the folder and the cure, and creates nothing',
    async (words) => {
      const cwd = await temporaryFolder();
      const { code, stdout, stderr } = await runCli(words.split(' '), { cwd });
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain(`no data of sluice in ${join(cwd, '.sluice')}`);
      expect(stderr).toContain('--data-dir');
      expect(await readdir(cwd)).toEqual([]);
    },
  );

  test('sluice import creates a database and names its folder, and later commands find it', async () => {
    const cwd = await temporaryFolder();
    await writeFile(join(cwd, 'users.csv'), 'user_id\nada\n');
    const loaded = await runCli(['import', 'users.csv'], { cwd });
    expect(loaded.stderr).toContain(`Making a new database in ${join(cwd, '.sluice')}`);
    expect(loaded.code).toBe(0);
    const listed = await runCli(['jobs', 'list'], { cwd });
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining('users.csv'), stderr: '' });
  });
});

describe('settings', () => {
  const key = 'k'.repeat(20);

  // proves: settings
  test('the environment wins over .env, a flag wins over both, and config shows each source and no secret', async () => {
    const cwd = await temporaryFolder();
    const url = 'redis://me:s3cr@et@example.org:6379';
    await writeFile(join(cwd, '.env'), `API_KEY=${key}\nREDIS_URL=${url}\nPORT=1111\nHOST=10.0.0.1\n`);
    const shown = await runCli(['config', '--json', '--host', '::1'], { cwd, env: { PORT: '2222' } });
    const entries = (JSON.parse(shown.stdout) as { name: string; value: string; source: string }[]).map(
      ({ name, value, source }) => [name, `${source} ${value}`] as const,
    );
    expect(Object.fromEntries(entries)).toMatchObject({
      API_KEY: '.env ***',
      REDIS_URL: '.env redis://me:***@example.org:6379',
      PORT: 'environment 2222',
      HOST: '--host ::1',
      DATA_DIR: 'default .sluice',
    });
    expect(shown.stdout + shown.stderr).not.toMatch(/s3cr|kkkk/);
    const table = await runCli(['config'], { cwd });
    expect(table.stdout).toMatch(/^API_KEY +\.env +\*{3}$/m);
    expect(table.stderr).toContain(`${join(cwd, '.env')} is read`);
  });

  // proves: settings
  test('a misspelt setting in .env or in the environment is refused with the right name, and other variables are ignored', async () => {
    const cwd = await temporaryFolder();
    const others = 'PGHOST=a\nAPP_NAME=b\nOTEL_SERVICE_NAME=c\n';
    await writeFile(join(cwd, '.env'), `DATABSE_URL=postgres://x\nPORTS=1\nWORKER=2\n${others}`);
    const env = {
      STORAGE_ULR: 's3://bucket',
      REDIS_URL_FILES: '/x',
      APP_KEY: 'd',
      HTTP_URL: 'e',
      POSTS: 'f',
      ...{ XDG_DATA_DIRS: '/usr', DATABASE_NAME: 'g', MOVE_TO: 'h' },
    };
    const lines = [
      ['DATABSE_URL', 'DATABASE_URL'],
      ['PORTS', 'PORT'],
      ['REDIS_URL_FILES', 'REDIS_URL_FILE'],
      ['STORAGE_ULR', 'STORAGE_URL'],
      ['WORKER', 'WORKERS'],
    ].map(
      ([name, meant]) => `${name}: is no setting of sluice. Did you mean ${meant}? Rename it, or unset it`,
    );
    for (const command of ['config', 'start', 'migrate']) {
      const { code, stderr } = await runCli([command], { cwd, env });
      const refusals = stderr.split('\n').filter((line) => line.includes('is no setting'));
      expect([command, code, refusals.map((line) => line.replace(/^sluice: /, '')).sort()]).toEqual([
        command,
        2,
        lines,
      ]);
    }
    expect(existsSync(join(cwd, '.sluice'))).toBe(false);
  });

  // proves: settings
  test('all wrong settings are reported at once', async () => {
    const env = {
      WORKERS: 'many',
      DATABASE_URL: 'mysql://x',
      API_KEY: 'short',
      PORT: 'http',
      REDIS_URL: 'x',
    };
    const { code, stderr } = await runCli(['migrate'], { env });
    expect(code).toBe(2);
    for (const name of Object.keys(env)) expect(stderr).toContain(`${name}: `);
  });

  test.each([
    ['--host 192.0.2.1', /^sluice: 192\.0\.2\.1 is no address of this machine\. .*--host/],
    ['--host no.such.name.invalid', /^sluice: no\.such\.name\.invalid is no address, and no name/],
    ['--data-dir /proc/x', /sluice: \/proc\/x\/postgres cannot be made: .*--data-dir/],
    ['--data-dir users.csv', /sluice: .*users\.csv\/postgres cannot be made: a file stands/],
  ])('sluice start %s reports the fault and the cure in a sentence', async (words, sentence) => {
    const cwd = await temporaryFolder();
    await writeFile(join(cwd, 'users.csv'), '');
    const { code, stdout, stderr } = await runCli(['start', ...words.split(' ')], { cwd });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.replace(/^.*Making .*\n/, '')).toMatch(sentence);
    expect(stderr).not.toMatch(/\n {4}at |LOG_LEVEL/);
  });

  test('a port that is taken is reported before anything is created', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = String(typeof address === 'object' ? address?.port : 0);
    const cwd = await temporaryFolder();
    const refused = await runCli(['start', '--port', port], { cwd });
    other.close();
    expect(refused).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`Port ${port} is taken`),
    });
    expect(await readdir(cwd)).toEqual([]);
  });
});

describe('in a folder with data', () => {
  const hasPsql = spawnSync('psql', ['--version']).status === 0;
  let dataDir: string;
  const sluice = (...words: string[]) => runCli([...words, '--data-dir', dataDir]);
  const psql = (...words: string[]) => runCli(['psql', '--data-dir', dataDir, ...words]);
  const count = () => psql('-Atc', 'select count(*) from environments');

  beforeAll(async () => {
    dataDir = await preparedDataDir('file');
  });

  test.runIf(hasPsql)('psql reaches the embedded database without a running server', async () => {
    expect(await count()).toEqual({ code: 0, stdout: '0\n', stderr: '' });
  });

  test('sluice console link and sluice db url have no answer where nothing runs', async () => {
    expect(await sluice('console', 'link')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`Nothing runs on ${dataDir}. Run \`sluice start\` there first.`),
    });
    expect(await sluice('db', 'url')).toMatchObject({ code: 1, stdout: '' });
  });

  describe('with a running server', () => {
    let url: string;
    beforeAll(async () => {
      ({ url } = await startService(dataDir, { WORKERS: '0' }, { until: 'file' }));
    });

    test('sluice console link gives a link, and warns where nobody answers', async () => {
      const link = (PUBLIC_URL: string) =>
        runCli(['console', 'link', '--data-dir', dataDir], { env: { PUBLIC_URL } });
      expect(await link(url)).toMatchObject({ code: 0, stderr: '' });
      expect(await link('http://127.0.0.1:1')).toMatchObject({
        code: 0,
        stderr: expect.stringContaining('no sluice answers at http://127.0.0.1:1 now'),
      });
    });

    test.runIf(hasPsql)('psql reaches the database of a running server, and db url names it', async () => {
      expect(await count()).toEqual({ code: 0, stdout: '1\n', stderr: '' });
      const [server] = await query<{ port: string }>(dataDir, 'show port');
      expect((await sluice('db', 'url')).stdout).toMatch(
        new RegExp(`^postgres://sluice:\\S+@127\\.0\\.0\\.1:${server?.port}/sluice\\n$`),
      );
      expect(await psql('-c', 'nonsense')).toMatchObject({ code: 1 });
      const without = await runCli(['psql', '--data-dir', dataDir], { env: { PATH: '/nowhere' } });
      expect(without).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/no psql here.*sluice db url/s),
      });
    });
  });
});
