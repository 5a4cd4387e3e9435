/** npm run build: the command, bundled into dist/bundle/. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { packageRoot } from '../src/package-root.ts';
import { bundleOptions } from './bundle-options.ts';

const outdir = join(packageRoot, 'dist', 'bundle');

await rm(outdir, { recursive: true, force: true });
await build({ ...bundleOptions, entryPoints: [join(packageRoot, 'src', 'cli', 'main.ts')], outdir });
