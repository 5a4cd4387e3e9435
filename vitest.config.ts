import { defineConfig } from 'vitest/config';

const project = (name: string, extra: object = {}) => ({
  test: { name, include: [`test/${name}/**/*.test.ts`], environment: 'node', ...extra },
});

export default defineConfig({
  test: {
    projects: [
      project('unit', { testTimeout: 30_000 }),
      project('integration', { testTimeout: 120_000, hookTimeout: 120_000 }),
      project('chaos', { testTimeout: 300_000, hookTimeout: 120_000, fileParallelism: false }),
    ],
  },
});
