/**
 * npm run build, after the compiler: the command and what runs in its sandboxes in dist/bundle/, the console in dist/console/,
 * and dist/openapi.json, which the package exports as `sluice/openapi.json`.
 */
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { build } from 'esbuild';
import { packageRoot } from '../src/base/package-root.ts';
import type { ConsoleManifest } from '../src/console/assets.ts';
import { apiPageAssets, bundleOptions } from './bundle-options.ts';
import { describeApi } from './describe-api.ts';
import { writeLicences } from './third-party-licences.ts';

const dist = join(packageRoot, 'dist');

await bundleProgram();
await bundleConsole();
await writeFile(join(dist, 'openapi.json'), `${JSON.stringify(await describeApi(), null, 2)}\n`);

async function bundleProgram(): Promise<void> {
  const outdir = join(dist, 'bundle');
  await rm(outdir, { recursive: true, force: true });
  const entryPoints = ['cli/main.ts', 'processes/sandbox.ts'].map((path) => join(packageRoot, 'src', path));
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

/**
 * Bundles the console. A file's name has a hash of its content; beside each stands the same compressed, so that no server does it
 * again. manifest.json says what the page loads.
 */
async function bundleConsole(): Promise<void> {
  const client = join(packageRoot, 'src', 'console', 'client');
  const outdir = join(dist, 'console');
  await rm(outdir, { recursive: true, force: true });
  const { metafile } = await build({
    entryPoints: {
      main: join(client, 'main.tsx'),
      style: join(client, 'styles', 'index.css'),
      icon: join(client, 'icon.svg'),
    },
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    minify: true,
    loader: { '.svg': 'copy' },
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    metafile: true,
    logLevel: 'warning',
  });

  const outputs = Object.entries(metafile.outputs);
  const madeOf = (source: string): string => {
    const found = outputs.find(([, { entryPoint }]) => entryPoint?.endsWith(`client/${source}`));
    if (found === undefined) throw new Error(`nothing was made of ${source}`);
    return basename(found[0]);
  };
  const script = madeOf('main.tsx');
  const imported = outputs.find(([path]) => basename(path) === script)?.[1].imports ?? [];
  const manifest: ConsoleManifest = {
    script,
    style: madeOf('styles/index.css'),
    icon: madeOf('icon.svg'),
    preload: imported.filter(({ kind }) => kind === 'import-statement').map(({ path }) => basename(path)),
    files: outputs.map(([path]) => basename(path)).sort(),
  };

  await mkdir(outdir, { recursive: true });
  for (const name of manifest.files) {
    const bytes = await readFile(join(outdir, name));
    await writeFile(join(outdir, `${name}.gz`), await promisify(gzip)(bytes, { level: 9 }));
    const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
    await writeFile(join(outdir, `${name}.br`), await promisify(brotliCompress)(bytes, { params: quality }));
  }
  await writeFile(join(outdir, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  await writeLicences(metafile, outdir);
}
