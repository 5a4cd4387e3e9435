import { describe, expect, test } from 'vitest';
import { releaseChangelog, unreleasedChanges } from '../../../tools/release-changelog.ts';

const home = 'https://example.org/sluice';
const first = `# Changelog\n\nIts format.\n\n## [Unreleased]\n\n### Added\n\n- Loads, see\n  [loading](docs/loading.md).\n`;
const release = { version: '0.1.0', date: '2026-11-23', home };

describe('a release in the changelog', () => {
  test('puts what is unreleased under its version and date, and leaves nothing unreleased', () => {
    expect(releaseChangelog(first, release)).toBe(
      `# Changelog\n\nIts format.\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-23\n\n### Added\n\n- Loads, see\n  [loading](docs/loading.md).\n
[Unreleased]: ${home}/compare/v0.1.0...HEAD\n[0.1.0]: ${home}/releases/tag/v0.1.0\n`,
    );
  });

  test('stands above earlier ones, whose text and addresses stay as they are', () => {
    const after = releaseChangelog(first, release);
    const next = after.replace('## [Unreleased]\n', '## [Unreleased]\n\n### Fixed\n\n- Exports.\n');
    expect(releaseChangelog(next, { ...release, version: '0.2.0', date: '2026-12-01' })).toBe(
      after
        .replace('## [0.1.0]', '## [0.2.0] - 2026-12-01\n\n### Fixed\n\n- Exports.\n\n## [0.1.0]')
        .replace(
          /^\[Unreleased\].*\n/m,
          `[Unreleased]: ${home}/compare/v0.2.0...HEAD\n[0.2.0]: ${home}/compare/v0.1.0...v0.2.0\n`,
        ),
    );
  });

  test.each([
    ['nothing', ''],
    ['headings only', '\n### Added\n\n### Fixed\n'],
  ])('is refused where %s is unreleased', (_, changes) => {
    const text = `# Changelog\n\n## [Unreleased]\n${changes}\n## [0.1.0] - 2026-11-23\n\n- Loads.\n`;
    expect(() => unreleasedChanges(text)).toThrow('says nothing under "Unreleased"');
    expect(() => releaseChangelog(text, { ...release, version: '0.2.0' })).toThrow('says nothing');
  });

  test('is refused where its version is there, or nothing says what is unreleased', () => {
    const text = releaseChangelog(first, release).replace(
      '## [Unreleased]\n',
      '## [Unreleased]\n\n- More.\n',
    );
    expect(() => releaseChangelog(text, release)).toThrow('has a version 0.1.0 already');
    expect(() => unreleasedChanges('# Changelog\n\n## 0.1.0\n\n- Loads.\n')).toThrow('## [Unreleased]');
  });
});
