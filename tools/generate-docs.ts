/** Writes docs/errors.md and docs/configuration.md from the code. `--verify` writes nothing and fails on a difference. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../src/package-root.ts';
import { configurationPage, errorsPage } from './pages.ts';

const verify = process.argv.includes('--verify');
for (const [name, page] of [
  ['errors.md', errorsPage()],
  ['configuration.md', configurationPage()],
] as const) {
  const path = join(packageRoot, 'docs', name);
  if (!verify) await writeFile(path, page);
  else if ((await readFile(path, 'utf8')) !== page) {
    process.stderr.write(`docs/${name} is not what the code says; run: npm run generate:docs\n`);
    process.exitCode = 1;
  }
}
