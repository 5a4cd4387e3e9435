import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { build, type Metafile, type Plugin } from 'esbuild';
import type { ConsoleManifest } from '../src/console/assets.ts';

/**
 * Provides `sluice:capabilities` and `sluice:capabilities.css`: the parts of the console in the
 * `console/` folders of capabilities.
 */
function capabilityParts(src: string, names: readonly string[]): Plugin {
  const filesOf = (file: string): readonly string[] =>
    names.map((name) => join(src, 'capabilities', name, 'console', file)).filter((path) => existsSync(path));
  return {
    name: 'sluice-capabilities',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^sluice:capabilities/ }, ({ path }) => ({ path, namespace: 'sluice' }));
      onLoad({ filter: /\.css$/, namespace: 'sluice' }, () => ({
        loader: 'css',
        resolveDir: src,
        contents: filesOf('style.css')
          .map((path) => `@import ${JSON.stringify(path)};\n`)
          .join(''),
      }));
      onLoad({ filter: /s$/, namespace: 'sluice' }, () => {
        const paths = filesOf('index.tsx');
        const imports = paths.map(
          (path, at) => `import { part as part${at} } from ${JSON.stringify(path)};\n`,
        );
        const list = paths.map((_, at) => `part${at}`).join(', ');
        return { resolveDir: src, contents: `${imports.join('')}export const parts = [${list}];\n` };
      });
    },
  };
}

/**
 * File names contain a hash of the content. Next to each file is a compressed copy. manifest.json
 * lists the files that the page loads.
 */
export async function bundleConsole(
  src: string,
  outdir: string,
  capabilities: readonly string[],
): Promise<Metafile> {
  const client = join(src, 'console', 'client');
  await rm(outdir, { recursive: true, force: true });
  const { metafile } = await build({
    entryPoints: {
      main: join(src, 'processes', 'console', 'main.tsx'),
      style: join(client, 'styles', 'index.css'),
      icon: join(client, 'icon.svg'),
    },
    outdir,
    plugins: [capabilityParts(src, capabilities)],
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
  const outputOf = (source: string): string => {
    const output = outputs.find(([, { entryPoint }]) => entryPoint?.endsWith(`console/${source}`));
    if (output === undefined) throw new Error(`nothing was made of ${source}`);
    return basename(output[0]);
  };
  const script = outputOf('main.tsx');
  const imported = outputs.find(([path]) => basename(path) === script)?.[1].imports ?? [];
  const manifest: ConsoleManifest = {
    script,
    style: outputOf('client/styles/index.css'),
    icon: outputOf('client/icon.svg'),
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
  return metafile;
}
