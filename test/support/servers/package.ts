import { execFile } from 'node:child_process';
import { cp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repository } from './compose.ts';

const run = promisify(execFile);

/** Files that `npm pack` puts into the tarball, and files that its scripts read. */
const needed = [
  'package.json',
  'tools',
  'src/base/package-root.ts',
  'src/capabilities',
  'dist/bundle',
  'dist/console',
  'dist/openapi.json',
  'docs',
  'sql',
];

export interface Packed {
  readonly tarball: string;
  /** package.json before and after packing. */
  readonly manifests: readonly [string, string];
}

/**
 * Runs `npm pack` in a copy of the repository in `folder`, because packing temporarily replaces
 * package.json. Requires `npm run build`.
 */
export async function packPackage(folder: string): Promise<Packed> {
  const texts = (await readdir(repository)).filter((name) => /^(?:README|CHANGELOG|LICENSE)/.test(name));
  for (const path of [...needed, ...texts]) {
    await cp(join(repository, path), join(folder, path), { recursive: true });
  }
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'));
  const manifest = join(folder, 'package.json');
  const before = (await readFile(manifest, 'utf8')).replace(/"build": "[^"]*"/, '"build": "true"');
  await writeFile(manifest, before);
  await run('npm', ['pack', '--pack-destination', folder], { cwd: folder });
  const [tarball = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  return { tarball: join(folder, tarball), manifests: [before, await readFile(manifest, 'utf8')] };
}

export async function listTarball(tarball: string): Promise<string[]> {
  const { stdout } = await run('tar', ['-tzf', tarball]);
  return stdout
    .split('\n')
    .filter((path) => path !== '')
    .map((path) => path.replace(/^package\//, ''))
    .sort();
}
