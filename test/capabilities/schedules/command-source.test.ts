import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'pg-connection-string';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { Interrupted } from '../../../src/base/errors.ts';
import type { ScheduleContext } from '../../../src/capabilities/schedules/context.ts';
import { readRunItems } from '../../../src/capabilities/schedules/run-item-store.ts';
import { readProfiles } from '../../support/files/load-file.ts';
import { collectLog } from '../../support/servers/collected-log.ts';
import { openTestSystem, type TestSystem } from '../../support/servers/system.ts';
import { startWebServer, type WebServer } from '../../support/servers/web-server.ts';
import { waitFor } from '../../support/wait-for.ts';
import { doNext, readSchedule, requestRun, runNow, runsOf, scheduleContext } from './support/schedules.ts';

let t: TestSystem;
let environmentId: number;
let context: ScheduleContext;
let folder: string;
let web: WebServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-commands-'));
  t = await openTestSystem({ worker: true });
  vi.stubEnv('TMPDIR', join(folder, 'tmp'));
  await mkdir(join(folder, 'tmp'));
  environmentId = t.environment.environmentId;
  web = await startWebServer('http');
  const { host, port, user, password, database } = parse(t.databaseUrl);
  const variables = {
    PGHOST: host ?? '',
    PGPORT: port ?? '',
    PGUSER: user ?? '',
    PGPASSWORD: password ?? '',
    PGDATABASE: database ?? '',
    SHOP_TOKEN: 'very-secret',
    OTHER_TOKEN: 'not-listed',
  };
  context = scheduleContext(t, { variables, sourceCommands: join(folder, 'commands.yaml') });
});
afterAll(async () => {
  await web?.stop();
  await t?.close();
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});
afterEach(() => t.system.pool.query('truncate users, companies, schedules cascade'));

interface Command {
  readonly run: readonly string[];
  readonly timeout?: string;
  readonly env?: readonly string[];
  readonly environments?: readonly string[];
}

const listCommands = (commands: Readonly<Record<string, Command>>) =>
  writeFile(join(folder, 'commands.yaml'), JSON.stringify(commands));
const scheduled = (name: string, parameters = {}, options = {}) =>
  readSchedule({ load: { command: { name, parameters }, entity: 'users', ...options } });

async function runCommand(command: Command, parameters = {}, runContext = context) {
  await listCommands({ nightly: command });
  return runNow(runContext, environmentId, scheduled('nightly', parameters));
}

const users = async () => (await readProfiles(t.system, environmentId)).users;
const put = async (name: string, content: string) => {
  await writeFile(join(folder, name), content);
  return join(folder, name);
};
const countFiles = async () => {
  const { rows } = await t.system.pool.query('select 1 from loads');
  return rows.length;
};
const script = (code: string, ...args: readonly string[]): Command => ({
  run: [process.execPath, '-e', code, ...args],
});

// proves: command-whole
test('the output of `cat` is loaded, once until it changes', async () => {
  const file = await put('a.csv', 'user_id,plan\nu1,pro\n');
  const cat = { run: ['cat', join(folder, '{name}.csv')] };
  expect(await runCommand(cat, { name: 'a' })).toMatchObject({
    status: 'completed',
    items: [{ item: 'command nightly', isNew: true }],
  });
  expect(await users()).toMatchObject({ u1: { metadata: { plan: 'pro' } } });
  expect(await runCommand(cat, { name: 'a' })).toMatchObject({ items: [{ isNew: false }] });
  await writeFile(file, 'user_id,plan\nu2,pro\n');
  expect(await runCommand(cat, { name: 'a' })).toMatchObject({ items: [{ isNew: true }] });
  expect(Object.keys(await users())).toEqual(['u1', 'u2']);
});

test('the output of `psql` is loaded, and a query without rows loads nothing', async () => {
  const psql = {
    run: [
      'psql',
      '--no-psqlrc',
      '-c',
      'copy (select n as user_id from generate_series(1, {count}) n) to stdout csv header',
    ],
    env: ['PGHOST', 'PGPORT', 'PGUSER', 'PGPASSWORD', 'PGDATABASE'],
  };
  expect(await runCommand(psql, { count: '3' })).toMatchObject({ status: 'completed' });
  expect(Object.keys(await users())).toEqual(['1', '2', '3']);
  expect(await runCommand(psql, { count: '0' })).toMatchObject({ status: 'unchanged', items: [] });
  const wrong = { ...psql, run: [...psql.run.slice(0, -1), 'select no_such_column'] };
  expect(await runCommand(wrong)).toMatchObject({
    status: 'failed',
    code: 'command_failed',
    reason: expect.stringMatching(/^nightly ended with 1: .*"no_such_column" does not exist/),
  });
});

test('`curl` fetches the export of a product for the day of the schedule', async () => {
  web.answer('/export', ({ url }, response) => response.end(`{"user_id":"${url?.slice(-10)}"}\n`));
  const curl = { run: ['curl', '-sSf', `${web.url}/export?day={yesterday}`] };
  expect(await runCommand(curl)).toMatchObject({ status: 'completed' });
  // The requested run is due on January 1, so `{yesterday}` is December 31.
  expect(Object.keys(await users())).toEqual(['2025-12-31']);
  const missing = { run: ['curl', '-sSf', `${web.url}/none`] };
  expect(await runCommand(missing)).toMatchObject({
    status: 'failed',
    reason: expect.stringMatching(/^nightly ended with 22: curl: .*404/),
  });
});

// proves: command-whole
test('the output of a command that fails later is neither loaded nor kept', async () => {
  const file = await put('b.csv', 'user_id\nu1\n');
  const filesBefore = await countFiles();
  const run = await runCommand({ run: ['cat', file, join(folder, 'missing.csv')] });
  expect(run).toMatchObject({ status: 'failed', code: 'command_failed' });
  expect(run.reason).toMatch(/^nightly ended with 1: cat: .*missing\.csv: No such file or directory$/);
  const selfKilled = script(
    'process.stdout.write("user_id\\nu1\\n", () => process.kill(process.pid, "SIGTERM"))',
  );
  expect(await runCommand(selfKilled)).toMatchObject({ reason: 'nightly was ended by SIGTERM' });
  const smallLimits = {
    ...context,
    schedules: { ...context.schedules, limits: { ...context.schedules.limits, maxUploadBytes: 1_000 } },
  };
  expect(await runCommand({ run: ['yes', 'user_id'] }, {}, smallLimits)).toMatchObject({
    code: 'payload_too_large',
  });
  expect(await users()).toEqual({});
  expect(await countFiles()).toBe(filesBefore);
  expect(await readdir(join(folder, 'tmp'))).toEqual([]);
});

// proves: command-confined
test('a hanging command is killed with its children at its time limit', async () => {
  const pids = join(folder, 'pids');
  const code = `
    const child = require('node:child_process').spawn('sleep', ['1000'], { stdio: 'inherit' });
    require('node:fs').writeFileSync(process.argv[1], [process.pid, child.pid].join(' '));
    process.stdout.write('user_id\\nu1\\n');
    setInterval(() => undefined, 1000);
  `;
  const run = await runCommand({ ...script(code, pids), timeout: '2s' });
  expect(run).toMatchObject({ code: 'command_timeout', reason: 'nightly did not end within 2s' });
  expect(await users()).toEqual({});
  for (const pid of (await readFile(pids, 'utf8')).split(' ')) await waitForEnd(Number(pid));
});

// proves: command-confined
test('a command is killed when its worker stops, and its run is released', async () => {
  const pids = join(folder, 'stopped');
  await listCommands({
    nightly: script(
      'require("node:fs").writeFileSync(process.argv[1], "" + process.pid); setInterval(() => {}, 1000)',
      pids,
    ),
  });
  const schedule = scheduled('nightly');
  await requestRun(context, environmentId, schedule, new Date('2026-02-01T00:00:00Z'));
  const stopping = new AbortController();
  const running = doNext(context, stopping.signal);
  const pid = await waitFor('the command', () => readFile(pids, 'utf8').catch(() => null));
  stopping.abort(new Interrupted('the worker stops'));
  await running;
  expect(await runsOf(context, schedule)).toMatchObject([{ status: 'queued', lastError: null }]);
  await waitForEnd(Number(pid));
  await t.system.pool.query(`delete from tasks where kind = 'run'`);
});

/** Waits until a process has exited. A zombie counts as exited. */
async function waitForEnd(pid: number): Promise<void> {
  await waitFor(`process ${pid} to end`, async () => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
    return stat === null || / Z /.test(stat);
  });
}

// proves: command-whole
test('a command that floods standard error is loaded, or fails with the last lines', async () => {
  const code = (end: string) => `
    const { writeSync } = require('node:fs');
    for (let at = 0; at < 50_000; at++) writeSync(2, 'line ' + at + ' ' + 'x'.repeat(60) + '\\n');
    ${end}
  `;
  expect(await runCommand(script(code("console.log('user_id\\nu1')")))).toMatchObject({
    status: 'completed',
  });
  const { reason } = await runCommand(script(code('process.exit(3)')));
  expect(reason).toMatch(/^nightly ended with 3: line 49995 x+ \/ .* \/ line 49999 x+$/);
});

// proves: command-confined
test('a command has only the listed variables, its own folder, and no input', async () => {
  const code = `
    const { readFileSync, readdirSync } = require('node:fs');
    console.log(JSON.stringify({
      user_id: 'u1', names: Object.keys(process.env).sort().join(),
      folder: process.cwd(), files: readdirSync('.').length, input: readFileSync(0, 'utf8').length,
    }));
  `;
  expect(await runCommand({ ...script(code), env: ['SHOP_TOKEN'] })).toMatchObject({ status: 'completed' });
  const metadata = (await users())['u1']?.metadata;
  expect(metadata).toMatchObject({ names: 'SHOP_TOKEN', files: 0, input: 0 });
  expect(metadata?.['folder']).toContain(join(folder, 'tmp/sluice-command-'));
  expect(await readdir(join(folder, 'tmp'))).toEqual([]);
  expect(await runCommand({ run: ['cat'], env: ['NOT_SET'] })).toMatchObject({ code: 'missing_variable' });
});

// proves: command-confined
test('a parameter stays within its argument, without expansion by a shell', async () => {
  const code = 'console.log(JSON.stringify({ user_id: "u1", args: process.argv.slice(1).join("|") }))';
  const value = `x; touch ${join(folder, 'made')} $(id) "a b" {other}`;
  const run = await runCommand(script(code, 'first-{a}.csv', '{today}', '{a}'), { a: value });
  expect(run).toMatchObject({ status: 'completed' });
  expect((await users())['u1']?.metadata).toEqual({ args: `first-${value}.csv|2026-01-01|${value}` });
  expect(await readdir(folder)).not.toContain('made');
});

// proves: command-confined
test('values of variables in the output of a failed command are not stored or logged', async () => {
  const { log, lines } = collectLog();
  const code = 'console.error("401 for " + process.env.SHOP_TOKEN + " at once"); process.exit(1)';
  const run = await runCommand({ ...script(code), env: ['SHOP_TOKEN'] }, {}, { ...context, log });
  expect(run.reason).toBe(`nightly ended with 1: 401 for \${SHOP_TOKEN} at once`);
  const items = await readRunItems(context.db, run.runId);
  expect(JSON.stringify([run, items, lines])).not.toContain('very-secret');
});

// proves: command-confined
test('an unlisted command is refused with the listed ones of the environment', async () => {
  const command = { run: ['cat', '{file}'] };
  await listCommands({ a: command, b: command, theirs: { ...command, environments: ['other'] } });
  const run = (name: string, parameters = {}) => runNow(context, environmentId, scheduled(name, parameters));
  for (const name of ['theirs', 'nightly', 'constructor']) {
    expect(await run(name)).toMatchObject({
      status: 'failed',
      code: 'unknown_command',
      reason: `${name} is not in SOURCE_COMMANDS for this environment. Commands: a, b`,
    });
  }
  expect(await run('a')).toMatchObject({ reason: 'a needs a value for the parameter file' });
  expect(await run('a', { file: 'x', day: 'y' })).toMatchObject({ reason: 'a has no placeholder {day}' });
  await writeFile(join(folder, 'commands.yaml'), 'a:\n  run: cat x\n');
  expect(await run('a')).toMatchObject({
    code: 'invalid_commands',
    reason: 'SOURCE_COMMANDS, line 2: a.run must be a list, not "cat x"',
  });
  const missing = await runCommand({ run: ['no-such-program-here'] });
  expect(missing).toMatchObject({ code: 'command_failed', reason: 'nightly cannot be started: ENOENT' });
});
