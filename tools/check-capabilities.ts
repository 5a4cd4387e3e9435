/**
 * Checks that the core does not depend on a capability. For each capability, type-checks source and
 * console without this capability and those that depend on it. Then removes all capabilities,
 * type-checks again, and bundles the console. Arguments limit the check to the capabilities that
 * they name.
 */
import { spawnSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../src/base/package-root.ts';
import { capabilities } from '../src/registry.ts';
import { bundleConsole } from './bundle-console.ts';

const all = capabilities.map(({ name }) => name);

function withDependants(name: string): string[] {
  const dependants = capabilities.filter(({ needs = [] }) => needs.includes(name));
  return [name, ...dependants.flatMap((each) => withDependants(each.name))];
}

/** Returns the compiler's output. */
async function checkWithout(names: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-capabilities-'));
  try {
    for (const part of ['src', 'jobs', 'examples', 'package.json', 'tsconfig.json'])
      await cp(join(packageRoot, part), join(folder, part), { recursive: true });
    await symlink(join(packageRoot, 'node_modules'), join(folder, 'node_modules'));
    const registry = join(folder, 'src/registry.ts');
    let text = await readFile(registry, 'utf8');
    for (const name of names) {
      await rm(join(folder, 'src/capabilities', name), { recursive: true });
      const imported = new RegExp(`^import \\{ (\\w+) \\} from './capabilities/${name}/.*\\n`, 'm');
      const value = imported.exec(text)?.[1];
      text = text.replace(imported, '').replace(new RegExp(`(?<=[[,]\\s*)${value}(?:,\\s*|(?=\\]))`), '');
    }
    await writeFile(registry, text);
    const compiler = join(packageRoot, 'node_modules/typescript/bin/tsc');
    const exclude = ['src/console/client', 'src/*/console', 'src/capabilities/*/console'];
    const config = { extends: './tsconfig.json', include: ['src', 'jobs'], exclude };
    await writeFile(join(folder, 'tsconfig.check.json'), JSON.stringify(config));
    const compile = (project: string): string =>
      spawnSync(process.execPath, [compiler, '--noEmit', '-p', project], { cwd: folder, encoding: 'utf8' })
        .stdout;
    if (names.length === all.length) await bundleConsole(join(folder, 'src'), join(folder, 'dist'), []);
    return compile('tsconfig.check.json') + compile('src/console/client');
  } finally {
    await rm(folder, { recursive: true });
  }
}

const names = process.argv.slice(2);
const unknown = names.filter((name) => !all.includes(name));
if (unknown.length > 0) throw new Error(`no capability has the name ${unknown.join(' or ')}`);
const removals = names.length > 0 ? names.map(withDependants) : [...all.map(withDependants), all];
const sets = new Set(removals.map((names) => [...new Set(names)].join(', ')));
for (const set of sets) {
  const names = set.split(', ');
  const problems = await checkWithout(names);
  process.stdout.write(`without ${set}: ${problems === '' ? 'compiles' : problems}\n`);
  if (problems !== '') process.exitCode = 1;
}
