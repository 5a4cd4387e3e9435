import { expect, test } from 'vitest';
import type { SeenFile } from '../../../src/capabilities/inbox/files.ts';
import { StableFiles } from '../../../src/capabilities/inbox/folders.ts';

const wall = Date.UTC(2026, 10, 20);

function file(name: string, ageMs: number, fields: Partial<SeenFile> = {}): SeenFile {
  const modifiedNs = BigInt(wall - ageMs) * 1_000_000n;
  return { name, folder: '', inode: 1n, size: 10n, modifiedNs, ...fields };
}

/** Scans the folder several times. Returns the files that each scan finds ready. */
function looks(
  settleMs: number,
  ...rounds: readonly (readonly [atMs: number, ...files: SeenFile[]])[]
): string[][] {
  const settling = new StableFiles(settleMs);
  return rounds.map(([atMs, ...files]) =>
    settling.look(files, { monotonicMs: 50 + atMs, wallMs: wall + atMs }).map(({ name }) => name),
  );
}

test('a file is complete once it has not changed over the settle time', () => {
  const a = file('a', 0);
  expect(looks(5_000, [0, a], [2_000, a], [4_000, a], [5_000, a])).toEqual([[], [], [], ['a']]);
});

test('a file is never complete at the first look, however short the settle time', () => {
  expect(looks(0, [0, file('a', 10_000)])).toEqual([[]]);
});

test('a file starts to settle again when its size, time or inode changes', () => {
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

test('files are taken by the time of their last change, then by name', () => {
  const files = [file('c', 30_000), file('b', 20_000), file('a', 20_000), file('d', 40_000)];
  expect(looks(1_000, [0, ...files], [10, ...files]).at(-1)).toEqual(['d', 'c', 'a', 'b']);
});

test('a complete file waits for an earlier incomplete one, and not for a later one', () => {
  const earlier = file('earlier', 500);
  const later = file('later', 400);
  const latest = file('latest', 0);
  const allFiles = [latest, later, earlier];
  expect(looks(1_000, [0, ...allFiles], [600, ...allFiles], [1_000, ...allFiles])).toEqual([
    [],
    ['earlier', 'later'],
    ['earlier', 'later', 'latest'],
  ]);
});
