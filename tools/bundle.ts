/** npm run build: the command and what runs in its sandboxes, bundled into dist/bundle/ with what it serves. */
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { packageRoot } from '../src/package-root.ts';
import { apiPageAssets, bundleOptions } from './bundle-options.ts';
import { writeLicences } from './third-party-licences.ts';

const outdir = join(packageRoot, 'dist', 'bundle');

await rm(outdir, { recursive: true, force: true });
const entryPoints = ['cli/main.ts', 'load/sandbox-main.ts'].map((path) => join(packageRoot, 'src', path));
const { metafile } = await build({
  ...bundleOptions,
  entryPoints,
  outdir,
  entryNames: '[name]',
  metafile: true,
});
await cp(apiPageAssets, join(outdir, 'static'), { recursive: true });
await writeLicences(metafile, outdir);
