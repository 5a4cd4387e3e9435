/**
 * Runs after the compiler in `npm run build`. Writes the command and the sandbox program to
 * dist/bundle/, the console to dist/console/, and dist/openapi.json, which the package exports.
 */
import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { packageRoot } from '../src/base/package-root.ts';
import { capabilities } from '../src/registry.ts';
import { bundleConsole } from './bundle-console.ts';
import { apiPageAssets, bundleOptions } from './bundle-options.ts';
import { describeApi } from './describe-api.ts';
import { writeLicences } from './third-party-licences.ts';

const src = join(packageRoot, 'src');
const dist = join(packageRoot, 'dist');

await bundleProgram();
const consoleFolder = join(dist, 'console');
const names = capabilities.map(({ name }) => name);
await writeLicences(await bundleConsole(src, consoleFolder, names), consoleFolder);
await writeFile(join(dist, 'openapi.json'), `${JSON.stringify(await describeApi(), null, 2)}\n`);

async function bundleProgram(): Promise<void> {
  const outdir = join(dist, 'bundle');
  await rm(outdir, { recursive: true, force: true });
  const entryPoints = ['cli/main.ts', 'processes/sandbox.ts'].map((path) => join(src, path));
  const { metafile } = await build({
    ...bundleOptions,
    entryPoints,
    outdir,
    entryNames: '[name]',
    metafile: true,
  });
  await cp(apiPageAssets, join(outdir, 'static'), { recursive: true });
  await writeLicences(metafile, outdir);
}
