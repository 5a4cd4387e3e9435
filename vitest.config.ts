import { spawnSync } from 'node:child_process';
import { readFileSync, statfsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { chromiumPath } from './test/support/browser.ts';
import { LongestFirst } from './test/support/longest-first.ts';

/**
 * Where there is plenty of memory, temporary folders are in it: a killed process loses nothing of what it wrote there,
 * and nobody waits for a disk. A container has 64 MB of it unless told otherwise.
 */
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

/**
 * One project per level of test. Forks, because Postgres dies with the thread that started it. Groups run one after
 * another: the last two start whole services and look at how fast they recover, so no other level may run beside them.
 */
const project = (name: string, group: number, maxWorkers: number, extra: object = {}) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    setupFiles: 'test/support/setup.ts',
    // Files that follow one another in a worker share the modules that they import: loading them is half of the work.
    isolate: false,
    environment: 'node',
    pool: 'forks' as const,
    maxWorkers,
    sequence: { groupOrder: group },
    testTimeout: 180_000,
    hookTimeout: 120_000,
    // A machine that was busy for a moment is no defect. Nothing else is tried again: that would hide a race.
    retry: { count: 1, condition: /to be less than/ },
    ...extra,
  },
});

/** A Postgres for the files of a project, each with databases of its own. */
const server = { globalSetup: 'test/support/postgres-server.ts' };

/**
 * What goes from a request through workers, once more with the queue on Redis, where there is a redis-server. Uploads need
 * it not: server.test.ts, the properties and chaos choose their queue themselves, and take both.
 */
const onRedis =
  spawnSync('redis-server', ['--version']).status === 0
    ? [
        project('redis', 0, 3, {
          include: ['test/contract/http/{bulk-identify,deletions}.test.ts'],
          env: { SLUICE_TEST_QUEUE: 'redis' },
          ...server,
        }),
      ]
    : [];

/** What stores and reads files, once more with them on S3. */
const onS3 = project('s3', 0, 3, {
  include: ['test/contract/http/{imports,exports,uploads}.test.ts', 'test/integration/export-write.test.ts'],
  env: { SLUICE_TEST_STORAGE: 's3' },
  ...server,
});

/** The console in a real browser, where there is one. Its files share the browser. */
const inBrowser =
  chromiumPath === null
    ? []
    : [
        project('console', 0, 3, {
          ...server,
          globalSetup: [server.globalSetup, 'test/support/browser.ts'],
        }),
      ];
if (chromiumPath === null) {
  process.stderr.write(
    'The console is not tested: there is no Chromium (apt-get install chromium-headless-shell).\n',
  );
}

const patient = { testTimeout: 300_000 };

/** Chaos that looks at times, memory or a small disk: nothing else may run beside it. */
const timed = ['test/chaos/{hostile-http,killed-workers,paused-worker,whole-service}.test.ts'];

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    experimental: { fsModuleCache: true },
    projects: [
      project('unit', 0, 3),
      project('integration', 0, 3, server),
      project('contract', 0, 3, server),
      ...onRedis,
      onS3,
      ...inBrowser,
      project('acceptance', 0, 3, {
        globalSetup: [server.globalSetup, 'test/support/prepared-data-dir.ts'],
      }),
      project('chaos', 1, 3, { ...server, ...patient, exclude: timed }),
      project('timed', 2, 1, { ...server, ...patient, include: timed }),
    ],
  },
});
