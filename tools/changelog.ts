/**
 * npm version: `check` refuses a release that the changelog says nothing of, before anything is changed; `release` moves what
 * is under Unreleased to the version that package.json has by then, with the date of today (UTC). CHANGELOG.md is in the
 * format of Keep a Changelog 1.1.0.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot, readPackage } from '../src/package-root.ts';

const unreleased = '## [Unreleased]\n';

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

interface Release {
  readonly version: string;
  /** 2026-11-23 */
  readonly date: string;
  /** Address of the repository, without a slash at the end. */
  readonly home: string;
}

interface Parts {
  readonly before: string;
  readonly changes: string;
  /** Earlier releases, each with its heading. */
  readonly earlier: string;
  /** Addresses of the headings, by version; the newest first. */
  readonly links: string;
}

/** Returns what the next release brings. Throws if that is nothing. */
function unreleasedChanges(text: string): string {
  return split(text).changes;
}

/** The changelog after a release: its changes under its version, and none that are unreleased. */
function releaseChangelog(text: string, { version, date, home }: Release): string {
  const { before, changes, earlier, links } = split(text);
  const heading = `## [${version}] - ${date}\n`;
  if (earlier.includes(`## [${version}]`)) throw new Error(`CHANGELOG.md has a version ${version} already.`);
  const latest = /^## \[([^\]]+)\]/m.exec(earlier)?.[1];
  const range = latest === undefined ? `releases/tag/v${version}` : `compare/v${latest}...v${version}`;
  const addresses = [
    `[Unreleased]: ${home}/compare/v${version}...HEAD`,
    `[${version}]: ${home}/${range}`,
    ...links.split('\n').filter((line) => line !== '' && !line.startsWith('[Unreleased]')),
  ];
  const sections = [`${before}${unreleased}`, `${heading}\n${changes}`, earlier, addresses.join('\n')];
  const whole = sections.map((section) => section.trimEnd()).filter((section) => section !== '');
  return `${whole.join('\n\n')}\n`;
}

function split(text: string): Parts {
  const [before, after, ...more] = text.split(unreleased);
  if (before === undefined || after === undefined || more.length > 0) {
    throw new Error('CHANGELOG.md needs one line "## [Unreleased]".');
  }
  const linksAt = after.search(/^\[[^\]]+\]: /m);
  const [body, links] = linksAt < 0 ? [after, ''] : [after.slice(0, linksAt), after.slice(linksAt)];
  const earlierAt = body.search(/^## /m);
  const [changes, earlier] = earlierAt < 0 ? [body, ''] : [body.slice(0, earlierAt), body.slice(earlierAt)];
  // A heading such as "### Added" alone is no change.
  if (!/^[^#\s]/m.test(changes)) {
    throw new Error('CHANGELOG.md says nothing under "Unreleased": write what the release brings.');
  }
  return { before, changes: changes.trim(), earlier, links };
}
