import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { pino } from 'pino';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { packageRoot } from '../../../src/base/package-root.ts';
import { Sandboxes, type SandboxesOptions, type Work } from '../../../src/base/sandbox/sandboxes.ts';
import { bundleOptions } from '../../../tools/bundle-options.ts';
import type { tasks } from '../../support/servers/sandbox-of-test.ts';
import { waitFor } from '../../support/wait-for.ts';

// The program is built in advance, because a process that compiles it starts ten times slower.
const outdir = join(packageRoot, 'dist', 'test');
const source = join(packageRoot, 'test', 'support', 'servers', 'sandbox-of-test.ts');
await build({ ...bundleOptions, entryPoints: [source], sourcemap: false, outdir });
const file = pathToFileURL(join(outdir, 'sandbox-of-test.js'));
const openSandboxes: Sandboxes[] = [];
afterEach(() => {
  for (const sandboxes of openSandboxes.splice(0)) sandboxes.close();
});

/** Opens sandboxes for a single test. */
function open(options: Partial<SandboxesOptions>) {
  const opened = createSandboxes(options);
  openSandboxes.push(opened.sandboxes);
  return opened;
}

function createSandboxes(options: Partial<SandboxesOptions> = {}) {
  const sandboxes = new Sandboxes(file, pino({ level: 'silent' }), {
    heapMib: 32,
    itemMs: 60_000,
    ...options,
  });
  const start = (task: keyof typeof tasks, input = 0, work: Partial<Work<number, string, Buffer>> = {}) =>
    sandboxes.run(task, {
      input,
      ask: async (question) => Buffer.from(question),
      owner: 1,
      isLong: false,
      signal: new AbortController().signal,
      ...work,
    });
  const run = async (...args: Parameters<typeof start>): Promise<unknown[]> => {
    const items: unknown[] = [];
    for await (const item of start(...args)) items.push(item);
    return items;
  };
  return { sandboxes, start, run };
}

/** Sandboxes with the default options, which tests share because processes take long to start. */
const shared = createSandboxes();
afterAll(() => shared.sandboxes.close());

const tooMuch = (limit: string) => ({
  problems: [{ code: 'payload_too_large', message: expect.stringContaining(`more ${limit}`) }],
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const pidOf = ([item]: readonly unknown[]): number => (item as { pid: number }).pid;

describe('a task in a sandbox', () => {
  test('a task yields all its items, and gets the answers to its questions', async () => {
    const { run } = shared;
    expect(await run('count', 1_000)).toEqual(Array.from({ length: 1_000 }, (_, at) => at + 1));
    expect((await run('ask', 3)).map(String)).toEqual(['a0b0', 'a1b1', 'a2b2']);
  });

  test('a task has no variables of the service, and the next task reuses its process', async () => {
    const { run } = shared;
    const result = await run('environment');
    expect(result).toMatchObject([{ variables: [] }]);
    expect(await run('environment')).toEqual(result);
  });

  // proves: sandbox
  test.each([
    ['largeArray', 'memory'],
    ['manyObjects', 'memory'],
    ['loop', 'time'],
  ] as const)('the task %s fails alone for too much %s', async (task, limit) => {
    const { run } = limit === 'time' ? open({ itemMs: 300 }) : shared;
    await expect(run(task)).rejects.toMatchObject(tooMuch(limit));
    expect(await run('count', 1)).toEqual([1]);
  });

  test('the time of a task counts per item, and not while it waits for others', async () => {
    const { start } = open({ itemMs: 1_000 });
    const items = start('ask', 1, {
      ask: (question) => new Promise((resolve) => setTimeout(resolve, 1_500, Buffer.from(question))),
    });
    expect(await items.next()).toMatchObject({ done: false });
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(await items.next()).toMatchObject({ done: true });
  });

  test.runIf(process.platform === 'linux')(
    'the time of a task is processor time, so a busy machine does not refuse a file',
    async () => {
      const { run } = open({ itemMs: 1_000 });
      const pid = pidOf(await run('environment'));
      process.kill(pid, 'SIGSTOP');
      setTimeout(() => process.kill(pid, 'SIGCONT'), 1_500);
      expect(await run('count', 2)).toEqual([1, 2]);
    },
  );

  test('a task that gets no processor time for long fails with a transient error', async () => {
    const { run } = open({ itemMs: 50 });
    await expect(run('idle')).rejects.toMatchObject({ name: 'TransientError' });
  });

  // proves: sandbox
  test('a task refuses with its own problems, and any other error is a fault', async () => {
    const { run } = shared;
    const problems = [{ code: 'unsupported_format', message: 'No such thing', details: 'line 7' }];
    await expect(run('refuse')).rejects.toMatchObject({ name: 'InputError', problems });
    await expect(run('fail')).rejects.toMatchObject({
      name: 'Fault',
      message: expect.stringContaining('x is not'),
    });
    await expect(run('exit')).rejects.toMatchObject({
      name: 'Fault',
      message: expect.stringContaining('code 3'),
    });
  });

  test('a task whose process is stopped from outside fails with a transient error', async () => {
    const { run } = shared;
    await expect(run('stop')).rejects.toMatchObject({
      name: 'TransientError',
      message: expect.stringContaining('SIGTERM'),
    });
    expect(await run('count', 1)).toEqual([1]);
  });

  test('a task ends when it is aborted, abandoned or closed', async () => {
    const { sandboxes, start, run } = open({ atATime: 1 });
    const abort = new AbortController();
    const waiting = run('idle', 0, { signal: abort.signal });
    abort.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    // The task pauses after its first item until the next one is requested, which never happens.
    const stop = new AbortController();
    await start('count', 9, { signal: stop.signal }).next();
    stop.abort();
    for await (const _ of start('loop', 1)) break;
    const pid = pidOf(await run('environment'));
    const unfinished = run('loop');
    sandboxes.close();
    await expect(unfinished).rejects.toThrow('the service stops');
    await waitFor('the process to end', () => !isAlive(pid));
  });
});

describe('the turns of tasks', () => {
  test('owners and long tasks have limited sandboxes, without delay for others', async () => {
    const { start, run } = open({ atATime: 3, perOwner: 2, longAtATime: 2 });
    const running = [
      start('count', 9, { owner: 1, isLong: true }),
      start('count', 9, { owner: 2, isLong: true }),
    ];
    for (const task of running) await task.next();
    const started: string[] = [];
    const queued = [
      run('count', 1, { owner: 1, isLong: true }).then(() => started.push('another of the first owner')),
      run('count', 1, { owner: 3, isLong: true }).then(() => started.push('a third long one')),
    ];
    await run('count', 1, { owner: 1 });
    await run('count', 1, { owner: 3 });
    expect(started).toEqual([]);
    for (const task of running) await task.return(undefined);
    await Promise.all(queued);
    expect(started).toHaveLength(2);
  });

  test('the owner with the fewest running tasks is next, however many wait', async () => {
    const { start, run } = open({ atATime: 2, perOwner: 2 });
    const running = [start('count', 9), start('count', 9)];
    for (const task of running) await task.next();
    const endedOwners: number[] = [];
    const begin = (owner: number) => run('count', 1, { owner }).then(() => endedOwners.push(owner));
    const queued = [begin(1), begin(1), begin(1), begin(2)];
    await running[0]?.return(undefined);
    await Promise.all(queued);
    expect(endedOwners[0]).toBe(2);
  });

  test('a task that waits too long for its turn fails with a transient error', async () => {
    const { start, run } = open({ atATime: 1, waitMs: 50 });
    await start('count', 9).next();
    await expect(run('count', 1)).rejects.toMatchObject({ name: 'TransientError' });
  });

  test('an unused sandbox ends', async () => {
    const { run } = open({ idleMs: 10 });
    const pid = pidOf(await run('environment'));
    await waitFor('the process to end', () => !isAlive(pid));
  });
});
