import { defineConfig } from 'vitest/config';

/** One project per level of test; see docs/architecture.md. Forks, because Postgres dies with the thread that started it. */
const project = (name: string, extra: object = {}) => ({
  test: { name, include: [`test/${name}/**/*.test.ts`], environment: 'node', pool: 'forks', ...extra },
});

const slow = { testTimeout: 180_000, hookTimeout: 120_000 };

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      project('unit', { testTimeout: 60_000 }),
      project('integration', slow),
      project('contract', slow),
      project('acceptance', slow),
      project('chaos', { ...slow, testTimeout: 300_000, fileParallelism: false }),
    ],
  },
});
