import { cp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { packageRoot } from '../../src/base/package-root.ts';
import { apiPageAssets, bundleOptions } from '../../tools/bundle-options.ts';
import { coreProgram } from './program.ts';

/* The core without any capability: in the process of a test by a plugin, and as a program that tests start. */

const contents = 'export const capabilities = [];';

/** A plugin of Vite. */
export const emptyRegistry = {
  name: 'empty-registry',
  load: (id: string) => (id.endsWith('/src/registry.ts') ? contents : null),
};

/** Run by vitest before the files of a project that start the core alone. */
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
