/**
 * Runs in `npm pack`. `prepack` replaces package.json with the manifest of the published package,
 * and `postpack` restores it. The manifest does not list bundled packages as dependencies, because
 * npm would install them a second time (figures: docs/decisions/packaging.md).
 */
import { copyFile, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../src/base/package-root.ts';
import { external } from './bundle-options.ts';

const manifest = join(packageRoot, 'package.json');
const savedManifest = join(packageRoot, 'dist', 'kept-package.json');

/**
 * Fields that only the repository needs: scripts, the packages that scripts use, and `private`,
 * which prevents `npm publish` from publishing the folder of the repository.
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
    // In a clone, `bin` is tools/launch.js, because the clone may not have been built yet.
    bin: { sluice: 'dist/bundle/main.js' },
    dependencies: Object.fromEntries(loose),
  };
  await copyFile(manifest, savedManifest);
  await writeFile(manifest, `${JSON.stringify(lean, null, 2)}\n`);
}

/**
 * Returns whether a name matches a pattern in the form of esbuild's `external`, in which a star
 * matches any text.
 */
function matches(name: string, pattern: string): boolean {
  const [start = '', end = ''] = pattern.split('*');
  return pattern.includes('*') ? name.startsWith(start) && name.endsWith(end) : name === pattern;
}

const [what] = process.argv.slice(2);
if (what === 'publish') await replaceManifest();
else if (what === 'restore') await rename(savedManifest, manifest);
else throw new Error('say publish or restore');
