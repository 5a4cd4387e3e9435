/*
 * The console: the web page that `npm run build` creates from `client/`. File names contain a hash
 * of the content, so browsers may keep them forever. Nothing is loaded from other sites.
 */
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { packageRoot } from '../base/package-root.ts';

/** Written by the build (`tools/build.ts`). */
export interface ConsoleManifest {
  readonly script: string;
  readonly style: string;
  readonly icon: string;
  /** Files that the script imports when it starts. */
  readonly preload: readonly string[];
  readonly files: readonly string[];
}

export type Encoding = 'br' | 'gzip' | 'identity';

interface Asset {
  readonly type: string;
  readonly bodies: Readonly<Record<Encoding, Buffer>>;
}

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export interface ConsoleAssets {
  readonly manifest: ConsoleManifest;
  readonly files: ReadonlyMap<string, Asset>;
}

/**
 * Reads all files of the console, because they are few and small. Returns `null` if the console has
 * not been built.
 */
export async function readConsoleAssets(
  folder = join(packageRoot, 'dist', 'console'),
): Promise<ConsoleAssets | null> {
  let manifest: ConsoleManifest;
  try {
    manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')) as ConsoleManifest;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const read = async (name: string): Promise<readonly [string, Asset]> => {
    const path = join(folder, name);
    const [identity, br, gzip] = await Promise.all(['', '.br', '.gz'].map((end) => readFile(path + end)));
    if (identity === undefined || br === undefined || gzip === undefined) throw new Error(`${path} is gone`);
    return [
      name,
      { type: types[extname(name)] ?? 'application/octet-stream', bodies: { identity, br, gzip } },
    ];
  };
  return { manifest, files: new Map(await Promise.all(manifest.files.map(read))) };
}

export function chooseEncoding(header: string | undefined): Encoding {
  const accepted = new Set(
    (header ?? '').split(',').flatMap((part) => {
      const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
      return parameters.some((text) => /^q=0(?:\.0*)?$/.test(text)) ? [] : [name];
    }),
  );
  if (accepted.has('br')) return 'br';
  return accepted.has('gzip') ? 'gzip' : 'identity';
}

/** `prefix` is the path prefix of a proxy, without a trailing slash. */
export function renderShell({ script, style, icon, preload }: ConsoleManifest, prefix: string): string {
  const at = (name: string): string => `${prefix}/console/assets/${name}`;
  const preloads = preload.map((name) => `<link rel="modulepreload" href="${at(name)}">`);
  return `<!doctype html>
<html lang="en" data-prefix="${prefix}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="sluice: see, load, correct and export.">
<meta name="robots" content="noindex">
<title>sluice</title>
<link rel="icon" type="image/svg+xml" href="${at(icon)}">
<link rel="stylesheet" href="${at(style)}">
${preloads.join('\n')}
<script type="module" src="${at(script)}"></script>
</head>
<body>
<div id="app"><main class="sign-in"><p>Loading the console …</p></main></div>
<noscript>The console needs JavaScript. Everything it shows is in the API: <a href="${prefix}/docs">${prefix}/docs</a>.</noscript>
</body>
</html>
`;
}
