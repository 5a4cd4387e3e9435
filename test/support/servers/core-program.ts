import { cp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { packageRoot } from '../../../src/base/package-root.ts';
import { apiPageAssets, bundleOptions } from '../../../tools/bundle-options.ts';
import { coreProgram } from './program.ts';

/**
 * The core without capabilities: a plugin for tests that import the core, and a program for tests
 * that start it.
 */

const contents = 'export const capabilities = [];';

export const emptyRegistry = {
  name: 'empty-registry',
  load: (id: string) => (id.endsWith('/src/registry.ts') ? contents : null),
};

/**
 * Builds the core as a program. vitest calls this before a project whose tests start the program.
 */
export async function setup(): Promise<void> {
  const outdir = dirname(coreProgram);
  await build({
    ...bundleOptions,
    plugins: [
      ...bundleOptions.plugins,
      {
        name: emptyRegistry.name,
        setup: ({ onLoad }) => onLoad({ filter: /[\\/]src[\\/]registry\.ts$/ }, () => ({ contents })),
      },
    ],
    entryPoints: ['cli/main.ts', 'processes/sandbox.ts'].map((path) => join(packageRoot, 'src', path)),
    outdir,
    entryNames: '[name]',
  });
  await cp(apiPageAssets, join(outdir, 'static'), { recursive: true });
}
