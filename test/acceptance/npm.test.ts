import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir } from './cli.ts';
import { awaitGone, descendants, type Process } from './processes.ts';

const root = resolve(import.meta.dirname, '../..');

interface Npm {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly output: () => string;
  /** Code or signal. */
  readonly ended: Promise<number | string>;
}

let running: Npm | null = null;
afterEach(() => {
  const { exitCode, signalCode } = running?.child ?? {};
  if (running !== null && exitCode === null && signalCode === null) process.kill(-running.pid, 'SIGKILL');
  running = null;
});

/** npm as a person runs it, with a process group of its own, as shells give it. */
function npm(args: readonly string[], env: Readonly<Record<string, string>>): Npm {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn('npm', args, {
    cwd: root,
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

/** Waits until the service answers and its worker runs. */
async function ready({ pid, output }: Npm): Promise<{ processes: Process[]; port: number }> {
  const port = await waitFor('the service to listen', () => /listens on \S+?:(\d+)/.exec(output())?.[1], {
    timeoutMs: 60_000,
  });
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

test('SIGTERM to `npm start` stops all of it in order before npm ends, with exit code 0', async () => {
  const started = npm(['start'], { DATA_DIR: await preparedDataDir() });
  const { processes, port } = await ready(started);
  started.child.kill('SIGTERM');
  expect(await started.ended).toBe(0);
  await awaitGone(processes, 1_000);
  expect(await refuses(port)).toBe(true);
  expect(started.output()).toContain('"msg":"stopped"');
});

test('Ctrl-C, which reaches the service from the terminal and again from npm, is one request to stop', async () => {
  const started = npm(['start'], { DATA_DIR: await preparedDataDir() });
  const { processes } = await ready(started);
  process.kill(-started.pid, 'SIGINT');
  expect(await started.ended).toBe(0);
  await awaitGone(processes, 1_000);
  expect(started.output()).toContain('"msg":"stopped"');
});

test('the service stops when npm is gone without having passed on a signal', async () => {
  const started = npm(['start'], { DATA_DIR: await preparedDataDir() });
  const { processes } = await ready(started);
  started.child.kill('SIGHUP');
  expect(await started.ended).toBe('SIGHUP');
  await awaitGone(processes, 20_000);
  await waitFor('the last line', () => started.output().includes('"msg":"stopped"'));
});

test('SIGTERM to `npm run demo` stops all of it and removes its folder', async () => {
  const demo = npm(['run', 'demo'], {});
  const folder = await waitFor('the folder', () => /data in \S*(sluice-demo-\w+)/.exec(demo.output())?.[1], {
    timeoutMs: 60_000,
  });
  const processes = await descendants(demo.pid);
  demo.child.kill('SIGTERM');
  expect(await demo.ended).toBe(130);
  await awaitGone(processes, 1_000);
  expect(await readdir(tmpdir())).not.toContain(folder);
});
