import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, symlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, temporaryFolder } from './cli.ts';
import { awaitGone, descendants, type Process } from './processes.ts';

const root = resolve(import.meta.dirname, '../..');

interface Npm {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly output: () => string;
  /** Resolves with the exit code, or the signal that ended npm. */
  readonly ended: Promise<number | string>;
}

let running: Npm | null = null;
afterEach(() => {
  const { exitCode, signalCode } = running?.child ?? {};
  if (running !== null && exitCode === null && signalCode === null) process.kill(-running.pid, 'SIGKILL');
  running = null;
});

/** Starts npm in its own process group, as a shell does. */
function npm(args: readonly string[], env: Readonly<Record<string, string>>, cwd = root): Npm {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn('npm', args, {
    cwd,
    env: { PATH, HOME, TMPDIR: tmpdir(), PORT: '0', WORKERS: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string);
  running = { child, pid: child.pid ?? 0, output: () => output, ended };
  return running;
}

/** Creates a folder with some files of the repository and the installed packages. */
async function makeClone(paths: readonly string[]): Promise<string> {
  const clone = await temporaryFolder();
  for (const path of paths) await cp(join(root, path), join(clone, path), { recursive: true });
  await symlink(join(root, 'node_modules'), join(clone, 'node_modules'));
  return clone;
}

async function ready({ pid, output }: Npm): Promise<{ processes: Process[]; port: number }> {
  const port = await waitFor('the service to listen', () => /listens on \S+?:(\d+)/.exec(output())?.[1]);
  const processes = await waitFor('the worker', async () => {
    const below = await descendants(pid);
    return below.some(({ command }) => / work$/.test(command)) ? below : null;
  });
  return { processes, port: Number(port) };
}

function refuses(port: number): Promise<boolean> {
  return new Promise((decide) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      decide(false);
    });
    socket.on('error', () => decide(true));
  });
}

// proves: sigterm
test('SIGTERM to `npm start` stops everything in order before npm ends, with exit code 0', async () => {
  const started = npm(['start'], { DATA_DIR: await preparedDataDir() });
  const { processes, port } = await ready(started);
  started.child.kill('SIGTERM');
  expect(await started.ended).toBe(0);
  await awaitGone(processes, 1_000);
  expect(await refuses(port)).toBe(true);
  expect(started.output()).toContain('"msg":"stopped"');
});

test('`npx sluice` in a clone without a build names the next step at once, and in a built clone it builds nothing', async () => {
  const run = async (paths: readonly string[]) => {
    const clone = await makeClone(['package.json', 'tools/launch.js', ...paths]);
    const npx = npm(['exec', '--', 'sluice', '--version'], { npm_config_cache: join(clone, 'cache') }, clone);
    return { code: await npx.ended, output: npx.output() };
  };
  expect(await run([])).toEqual({
    code: 1,
    output: expect.stringContaining('not built. Run `npm ci` in it'),
  });
  // The source is missing, so `npx` would fail if it tried to build the program.
  expect(await run(['dist/bundle'])).toEqual({ code: 0, output: expect.stringMatching(/^\d+\.\d+\.\d+$/m) });
});
