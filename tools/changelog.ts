/**
 * npm version: `check` refuses a release that the changelog says nothing of, before anything is changed; `release` moves what
 * is under Unreleased to the version that package.json has by then, with the date of today (UTC).
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot, readPackage } from '../src/package-root.ts';
import { releaseChangelog, unreleasedChanges } from './release-changelog.ts';

const path = join(packageRoot, 'CHANGELOG.md');
const text = await readFile(path, 'utf8');
const [what] = process.argv.slice(2);
if (what === 'check') unreleasedChanges(text);
else if (what === 'release') {
  const { version } = readPackage();
  const { repository } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as {
    readonly repository: { readonly url: string };
  };
  const home = repository.url.replace(/^git\+|\.git$/g, '');
  await writeFile(
    path,
    releaseChangelog(text, { version, date: new Date().toISOString().slice(0, 10), home }),
  );
} else throw new Error('say check or release');
