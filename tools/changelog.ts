/**
 * Runs in `npm version`. `check` refuses a release without changes before any file is modified.
 * `release` moves the changes to a section for the version in package.json, with today's date
 * (UTC). The format is Keep a Changelog 1.1.0.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot, readPackage } from '../src/base/package-root.ts';

const path = join(packageRoot, 'CHANGELOG.md');
const text = await readFile(path, 'utf8');
const [, changes, ...more] = text.split(/^## \[Unreleased\]\n/m);
if (changes === undefined || more.length > 0)
  throw new Error('CHANGELOG.md needs one line "## [Unreleased]".');
// A heading without text, such as "### Added", is not a change.
if (!/^[^#\s]/m.test(changes.split(/^(?:## |\[)/m, 1).join()))
  throw new Error('CHANGELOG.md says nothing under "Unreleased": write what the release brings.');
const [what] = process.argv.slice(2);
if (what === 'release') await writeFile(path, await releasedText());
else if (what !== 'check') throw new Error('say check or release');

/**
 * Returns the text with a section for the version, and with a link that compares the version with
 * the previous one.
 */
async function releasedText(): Promise<string> {
  const { version } = readPackage();
  const { repository } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as {
    readonly repository: { readonly url: string };
  };
  const home = repository.url.replace(/^git\+|\.git$/g, '');
  if (text.includes(`## [${version}]`)) throw new Error(`CHANGELOG.md has a version ${version} already.`);
  const latest = /^## \[(\d[^\]]*)\]/m.exec(text)?.[1];
  const range = latest === undefined ? `releases/tag/v${version}` : `compare/v${latest}...v${version}`;
  const links = `[Unreleased]: ${home}/compare/v${version}...HEAD\n[${version}]: ${home}/${range}\n`;
  const today = new Date().toISOString().slice(0, 10);
  const whole = text.replace('## [Unreleased]\n', `## [Unreleased]\n\n## [${version}] - ${today}\n`);
  return /^\[Unreleased\]: .*\n/m.test(whole)
    ? whole.replace(/^\[Unreleased\]: .*\n/m, () => links)
    : `${whole.trimEnd()}\n\n${links}`;
}
