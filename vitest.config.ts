import { spawnSync } from 'node:child_process';
import { readFileSync, statfsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { chromiumPath } from './test/support/browsers/browser.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { emptyRegistry } from './test/support/servers/core-program.ts';
import { long, repeating } from './test/support/tiers.ts';
import { patienceMs } from './test/support/wait-for.ts';

/**
 * Temporary folders are in memory if there is plenty, so that no test waits for a disk. By default
 * a container has 64 MB of it.
 */
const memory = '/dev/shm';
const plenty = 8 * 2 ** 30;

function memoryIsPlenty(): boolean {
  try {
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === memory);
    const { bavail, bsize } = statfsSync(memory);
    // Copies of the embedded Postgres are run from there too.
    const runsPrograms = mount !== undefined && !/\bnoexec\b/.test(mount);
    return runsPrograms && Math.min(bavail * bsize, process.availableMemory()) >= plenty;
  } catch {
    return false;
  }
}

if (process.env['TMPDIR'] === undefined && memoryIsPlenty()) process.env['TMPDIR'] = memory;

/** A PostgreSQL for the files of a project, each with its own databases. */
const server = { globalSetup: 'test/support/servers/postgres-server.ts' };

/**
 * Returns whether this machine takes long to start a process, usually 40 ms. Takes the best of
 * three, because it may be busy for a moment.
 */
function isSlow(): boolean {
  const times = [1, 2, 3].map(() => {
    const startedAt = performance.now();
    spawnSync(process.execPath, ['--eval', '0']);
    return performance.now() - startedAt;
  });
  return Math.min(...times) > 70;
}

/**
 * For files that wait half of the time, for processes or a browser: one more at a time keeps both
 * cores busy. On a slow machine that many would starve each other's workers, whose leases would end
 * as if they had died.
 */
const waiting = { maxWorkers: isSlow() ? 3 : 5, sequence: { groupOrder: 1 } };

/** Tests that measure times, memory or a small disk, so that nothing else may run beside them. */
const timed = [
  'test/chaos/{full-disk,hostile-http,killed-workers}.test.ts',
  'test/{integration/budget,contract/http/record-queue}.test.ts',
];

/** Tests of the queue and of the file store, which run again on Redis and on S3. */
const onRedis = ['test/contract/http/deletions.test.ts'];
const onS3 = ['test/contract/http/{exports,imports}.test.ts'];

/**
 * Kinds of tests that a capability has in a separate folder, because they need the project of this
 * name.
 */
const kinds = ['acceptance', 'console', 'chaos'];

/**
 * Tests that also run with the core alone: its own demo, creating and removing data, starting and
 * ending processes.
 */
const onCore = ['test/acceptance/{core,delete,endings,start}.test.ts'];

/**
 * `npm test` runs in mode "short": tests that take minutes and need only the embedded PostgreSQL.
 * `.ci/run` runs in mode "ci", which proves each promise once. `npm run test:core` runs in mode
 * "core": all tests without capabilities. `npm run test:all` runs everything.
 */
export default defineConfig(({ mode }) => {
  const isShort = mode === 'short';
  let excluded: readonly string[] = [];
  if (isShort) excluded = [...long, ...repeating];
  else if (['ci', 'core'].includes(mode)) excluded = repeating;

  /**
   * Returns a project of forks, because PostgreSQL dies with the thread that started it. Groups run
   * one after another.
   */
  const project = (name: string, more: object = {}) => ({
    test: {
      name,
      include: [`test/${kinds.includes(name) ? '{,capabilities/*/}' : ''}${name}/**/*.test.ts`],
      exclude: [...timed, ...excluded],
      setupFiles: 'test/support/setup.ts',
      // Successive files of a worker share the modules that they import, because loading them is
      // half of the work.
      isolate: false,
      environment: 'node',
      pool: 'forks' as const,
      // On two cores, four workers take 50 % longer than three, because each compiles its imports.
      maxWorkers: 3,
      sequence: { groupOrder: 0 },
      env: excluded.length > 0 ? { SLUICE_TEST_SHORT: '1' } : {},
      // A machine may be slow, and large runs repeat a test for each step at which a process can
      // die.
      testTimeout: 1_800_000,
      hookTimeout: 1_800_000,
      expect: { poll: { timeout: patienceMs } },
      // A machine that is busy for a moment is not a defect. Nothing else is repeated, because that
      // would hide a race.
      retry: { count: 2, condition: /to be less than/ },
      ...more,
    },
  });

  /** Project of the core, on an empty registry. The other projects have all capabilities. */
  const coreProject = (name: string, more?: object) => ({ ...project(name, more), plugins: [emptyRegistry] });
  const acceptance = {
    ...waiting,
    globalSetup: [server.globalSetup, 'test/support/servers/prepared-data-dir.ts'],
  };
  const startsCore = {
    include: onCore,
    env: { SLUICE_TEST_PROGRAM: 'core', SLUICE_TEST_SHORT: '1' },
    globalSetup: [...acceptance.globalSetup, 'test/support/servers/core-program.ts'],
  };

  return {
    test: {
      sequence: { sequencer: LongestFirst },
      experimental: { fsModuleCache: true },
      projects: [
        coreProject('core', { ...server, include: ['test/{unit,integration,contract}/**/*.test.ts'] }),
        ...(mode === 'core'
          ? [project('acceptance', { ...acceptance, ...startsCore })]
          : [
              project('capabilities', {
                ...server,
                exclude: [...timed, ...excluded, ...kinds.map((kind) => `test/capabilities/*/${kind}/**`)],
              }),
              // Even its set-up takes as long as several files.
              ...(isShort ? [] : [project('acceptance', acceptance)]),
            ]),
        ...(isShort || mode === 'core' ? [] : everythingElse(project, excluded)),
      ],
    },
  };
});

type Project = (name: string, more?: object) => { readonly test: object };

/** Returns the projects that need a program of the system, or much time. */
function everythingElse(project: Project, excluded: readonly string[]) {
  const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
  const hasBrowser = chromiumPath !== null;
  if (!hasBrowser) {
    process.stderr.write(
      'The console is not tested: there is no Chromium (apt-get install chromium-headless-shell).\n',
    );
  }
  return [
    // Requests that lead through workers, again with the queue on Redis. Other tests choose their
    // queue.
    ...(hasRedis
      ? [project('redis', { include: onRedis, env: { SLUICE_TEST_QUEUE: 'redis' }, ...server })]
      : []),
    project('s3', { include: onS3, env: { SLUICE_TEST_STORAGE: 's3' }, ...server }),
    // The files of this project share the browser.
    ...(hasBrowser
      ? [
          project('console', {
            ...waiting,
            globalSetup: [server.globalSetup, 'test/support/browsers/browser.ts'],
          }),
        ]
      : []),
    project('chaos', { ...waiting, ...server }),
    project('timed', {
      include: timed,
      exclude: excluded,
      maxWorkers: 1,
      sequence: { groupOrder: 2 },
      ...server,
    }),
  ];
}
