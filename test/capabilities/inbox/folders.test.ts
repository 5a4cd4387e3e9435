import { describe, expect, test } from 'vitest';
import type { SeenFile } from '../../../src/capabilities/inbox/files.ts';
import { StableFiles } from '../../../src/capabilities/inbox/folders.ts';

const wall = Date.UTC(2026, 10, 20);

/** A file that was last changed `ageMs` before the first look. */
function file(name: string, ageMs: number, own: Partial<SeenFile> = {}): SeenFile {
  const modifiedNs = BigInt(wall - ageMs) * 1_000_000n;
  return { name, folder: '', inode: 1n, size: 10n, modifiedNs, ...own };
}

/** What is ready at each of the looks, made so many milliseconds after the first. */
function looks(
  settleMs: number,
  ...rounds: readonly (readonly [atMs: number, ...files: SeenFile[]])[]
): string[][] {
  const settling = new StableFiles(settleMs);
  return rounds.map(([atMs, ...files]) =>
    settling.look(files, { monotonicMs: 50 + atMs, wallMs: wall + atMs }).map(({ name }) => name),
  );
}

describe('a file is complete', () => {
  test('once it has not changed over the settle time', () => {
    const a = file('a', 0);
    expect(looks(5_000, [0, a], [2_000, a], [4_000, a], [5_000, a])).toEqual([[], [], [], ['a']]);
  });

  test('never at the first look, however short the settle time', () => {
    expect(looks(0, [0, file('a', 10_000)])).toEqual([[]]);
  });

  test('not while its size, its time or the file itself changes, each counted from then on', () => {
    const a = file('a', 0);
    const grown = { ...a, size: 11n };
    const touched = { ...grown, modifiedNs: grown.modifiedNs + 1n };
    const replaced = { ...touched, inode: 2n };
    const rounds = [
      [0, a],
      [900, grown],
      [1_800, touched],
      [2_700, replaced],
    ] as const;
    expect(looks(1_000, ...rounds, [3_600, replaced])).toEqual([[], [], [], [], ['a']]);
  });
});

describe('files are taken in order of arrival', () => {
  test('by the time of their last change, then by name', () => {
    const files = [file('c', 30_000), file('b', 20_000), file('a', 20_000), file('d', 40_000)];
    expect(looks(1_000, [0, ...files], [10, ...files]).at(-1)).toEqual(['d', 'c', 'a', 'b']);
  });

  test('so that a complete one waits for an earlier one that is not, and not for a later one', () => {
    const earlier = file('earlier', 500);
    const later = file('later', 400);
    const latest = file('latest', 0);
    const all = [latest, later, earlier];
    expect(looks(1_000, [0, ...all], [600, ...all], [1_000, ...all])).toEqual([
      [],
      ['earlier', 'later'],
      ['earlier', 'later', 'latest'],
    ]);
  });
});
