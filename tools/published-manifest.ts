/**
 * Runs in `npm pack`: `prepack` writes the manifest of the published package, and `postpack`
 * restores package.json. Bundled packages are left out of the dependencies, because npm would
 * install them again (docs/decisions/packaging.md).
 */
import { copyFile, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../src/base/package-root.ts';
import { external } from './bundle-options.ts';

const manifest = join(packageRoot, 'package.json');
const savedManifest = join(packageRoot, 'dist', 'kept-package.json');

/**
 * Only the repository needs scripts, their packages, and `private`, which prevents `npm publish`
 * from publishing the repository.
 */
const unpublished = ['private', 'scripts', 'dependencies', 'devDependencies', 'overrides'];

type Dependencies = Readonly<Record<string, string>>;

async function replaceManifest(): Promise<void> {
  const whole = JSON.parse(await readFile(manifest, 'utf8')) as { readonly dependencies?: Dependencies };
  const { dependencies = {} } = whole;
  if (!('scripts' in whole)) throw new Error(`${manifest} is replaced already: git checkout package.json`);
  const published = Object.entries(whole).filter(([name]) => !unpublished.includes(name));
  const loose = Object.entries(dependencies).filter(([name]) => external.some((each) => matches(name, each)));
  const lean = {
    ...Object.fromEntries(published),
    // A clone may not have been built yet, so its `bin` is tools/launch.js.
    bin: { sluice: 'dist/bundle/main.js' },
    dependencies: Object.fromEntries(loose),
  };
  await copyFile(manifest, savedManifest);
  await writeFile(manifest, `${JSON.stringify(lean, null, 2)}\n`);
}

/** True if the name matches the pattern. A star matches any text, as in esbuild's `external`. */
function matches(name: string, pattern: string): boolean {
  const [start = '', end = ''] = pattern.split('*');
  return pattern.includes('*') ? name.startsWith(start) && name.endsWith(end) : name === pattern;
}

const [what] = process.argv.slice(2);
if (what === 'publish') await replaceManifest();
else if (what === 'restore') await rename(savedManifest, manifest);
else throw new Error('say publish or restore');
