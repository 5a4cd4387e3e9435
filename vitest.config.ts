import { spawnSync } from 'node:child_process';
import { readFileSync, statfsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { chromiumPath } from './test/support/browser.ts';
import { emptyRegistry } from './test/support/core-program.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { long, repeating } from './test/support/tiers.ts';
import { patienceMs } from './test/support/wait-for.ts';

/** Temporary folders are in memory if there is plenty: nobody waits for a disk. A container has 64 MB of it unless told otherwise. */
const memory = '/dev/shm';
const plenty = 8 * 2 ** 30;

function memoryIsPlenty(): boolean {
  try {
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === memory);
    const { bavail, bsize } = statfsSync(memory);
    // The programs of the embedded Postgres are run from copies, too.
    const runsPrograms = mount !== undefined && !/\bnoexec\b/.test(mount);
    return runsPrograms && Math.min(bavail * bsize, process.availableMemory()) >= plenty;
  } catch {
    return false;
  }
}

if (process.env['TMPDIR'] === undefined && memoryIsPlenty()) process.env['TMPDIR'] = memory;

/** A PostgreSQL for the files of a project, each with databases of its own. */
const server = { globalSetup: 'test/support/postgres-server.ts' };

/** Tells whether this machine takes long to start a process. Usual: 40 ms. The best of three: it may be busy for a moment. */
function isSlow(): boolean {
  const times = [1, 2, 3].map(() => {
    const began = performance.now();
    spawnSync(process.execPath, ['--eval', '0']);
    return performance.now() - began;
  });
  return Math.min(...times) > 70;
}

/**
 * For files that wait half of the time, for processes or a browser: with one more at a time both cores have something to do. On a slow
 * machine so many would starve each other's workers, whose leases end then as if they had died.
 */
const waiting = { maxWorkers: isSlow() ? 2 : 5, sequence: { groupOrder: 1 } };

/** Tests that measure times, memory or a small disk: nothing else may run beside them. */
const timed = [
  'test/chaos/{hostile-http,killed-workers,whole-service}.test.ts',
  'test/{unit/linear-scanners,contract/http/record-queue,capabilities/inspection/linear}.test.ts',
];

/** What goes through the queue, and what stores and reads files: once more on Redis, and on S3. */
const onRedis = ['test/contract/http/{bulk-identify,deletions}.test.ts'];
const onS3 = [
  'test/contract/http/{imports,exports,uploads}.test.ts',
  'test/integration/export-write.test.ts',
];

/** What a capability has in a folder of its own, because its tests need what a project of this name has. */
const kinds = ['acceptance', 'console', 'chaos'];

/** Commands that are worth a run with the core alone: its own demo, what makes and removes data, and what starts and ends processes. */
const onCore = ['test/acceptance/{core,delete,endings,start}.test.ts'];

/**
 * `npm test` runs in mode "short": what the embedded PostgreSQL is enough for. `.ci/run` runs in mode "ci": what proves each promise
 * once. `npm run test:core` runs in mode "core": all that runs without capabilities. `npm run test:all` runs everything.
 */
export default defineConfig(({ mode }) => {
  const short = mode === 'short';
  const leftOut = short ? [...long, ...repeating] : ['ci', 'core'].includes(mode) ? repeating : [];

  /** Forks, because PostgreSQL dies with the thread that started it. Groups run one after another. */
  const project = (name: string, more: object = {}) => ({
    test: {
      name,
      include: [`test/${kinds.includes(name) ? '{,capabilities/*/}' : ''}${name}/**/*.test.ts`],
      exclude: [...timed, ...leftOut],
      setupFiles: 'test/support/setup.ts',
      // Files that follow one another in a worker share the modules that they import: loading them is half of the work.
      isolate: false,
      environment: 'node',
      pool: 'forks' as const,
      // On two cores four take half as long again as three: each compiles what it imports.
      maxWorkers: 3,
      sequence: { groupOrder: 0 },
      env: leftOut.length > 0 ? { SLUICE_TEST_SHORT: '1' } : {},
      // A machine may be slow, and large runs repeat a test's work for each step at which a process can die.
      testTimeout: 1_800_000,
      hookTimeout: 1_800_000,
      expect: { poll: { timeout: patienceMs } },
      // A machine that was busy for a moment is no defect. Nothing else is tried again: that would hide a race.
      retry: { count: 2, condition: /to be less than/ },
      ...more,
    },
  });

  /** Of the core, on an empty registry. The other projects have all capabilities. */
  const ofCore = (name: string, more?: object) => ({ ...project(name, more), plugins: [emptyRegistry] });
  const acceptance = { ...waiting, globalSetup: [server.globalSetup, 'test/support/prepared-data-dir.ts'] };
  const startsCore = {
    include: onCore,
    env: { SLUICE_TEST_PROGRAM: 'core', SLUICE_TEST_SHORT: '1' },
    globalSetup: [...acceptance.globalSetup, 'test/support/core-program.ts'],
  };

  return {
    test: {
      sequence: { sequencer: LongestFirst },
      experimental: { fsModuleCache: true },
      projects: [
        ofCore('unit'),
        ofCore('integration', server),
        ofCore('contract', server),
        ...(mode === 'core'
          ? [project('acceptance', { ...acceptance, ...startsCore })]
          : [
              project('capabilities', {
                ...server,
                exclude: [...timed, ...leftOut, ...kinds.map((kind) => `test/capabilities/*/${kind}/**`)],
              }),
              project('acceptance', acceptance),
            ]),
        ...(short || mode === 'core' ? [] : everythingElse(project, leftOut)),
      ],
    },
  };
});

type Project = (name: string, more?: object) => { readonly test: object };

/** The projects that need a program of the system, or time. */
function everythingElse(project: Project, leftOut: readonly string[]) {
  const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
  const hasBrowser = chromiumPath !== null;
  if (!hasBrowser) {
    process.stderr.write(
      'The console is not tested: there is no Chromium (apt-get install chromium-headless-shell).\n',
    );
  }
  return [
    // What goes from a request through workers, once more with the queue on Redis. Other tests choose their queue themselves.
    ...(hasRedis
      ? [project('redis', { include: onRedis, env: { SLUICE_TEST_QUEUE: 'redis' }, ...server })]
      : []),
    project('s3', { include: onS3, env: { SLUICE_TEST_STORAGE: 's3' }, ...server }),
    // Its files share the browser.
    ...(hasBrowser
      ? [project('console', { ...waiting, globalSetup: [server.globalSetup, 'test/support/browser.ts'] })]
      : []),
    project('chaos', { ...waiting, ...server }),
    project('timed', {
      include: timed,
      exclude: leftOut,
      maxWorkers: 1,
      sequence: { groupOrder: 2 },
      ...server,
    }),
  ];
}
