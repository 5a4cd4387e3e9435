import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type FileFigures, findSurprises, readVolumeGuard } from '../../../src/domain/guards.ts';

const columns = ['user_id', 'plan'];
const fileOf = (rows: number, rejected = 0, names: readonly string[] | null = columns): FileFigures => ({
  rows,
  rejected,
  columns: names,
});
const surprises = (...args: Parameters<typeof findSurprises>) =>
  findSurprises(...args).map(({ figure, message }) => `${figure}: ${message}`);

test('a volume guard is read from `usual`, text, JSON or an object', () => {
  const figures = { rows: '900..1100', max_rejected: '2%', columns };
  expect(readVolumeGuard('usual')).toBe('usual');
  expect(readVolumeGuard('rows=900..1100 max_rejected=2% columns=user_id,plan')).toEqual(figures);
  expect(readVolumeGuard(JSON.stringify(figures))).toEqual(figures);
  expect(readVolumeGuard(figures)).toEqual(figures);
  expect(readVolumeGuard({ rows: '10..', max_rejected: 3 })).toEqual({ rows: '10..', max_rejected: 3 });
});

test.each([
  ...['', 'often', 'rows', 'rows=..', 'rows=5', 'rows=9..1', 'max_rejected=200%', 'columns=', 'max=1'],
  ...['{', 'null', '{"rows":null}', '{"columns":[1]}', '{"columns":[]}', '{}', '[]', null, 7, []],
])('%j is refused as a volume guard', (guard) => {
  expect(readVolumeGuard(guard)).toBeUndefined();
});

test.each([
  ['rows=900..1100', fileOf(899), 'rows: 899 rows; expected: 900 to 1,100'],
  ['rows=900..1100', fileOf(1_101), 'rows: 1,101 rows; expected: 900 to 1,100'],
  ['rows=900..', fileOf(1), 'rows: 1 row; expected: at least 900'],
  ['rows=..5', fileOf(6), 'rows: 6 rows; expected: at most 5'],
  ['max_rejected=2%', fileOf(100, 3), 'rejected: 3 of 100 records refused; expected: at most 2'],
  ['max_rejected=0', fileOf(100, 1), 'rejected: 1 of 100 records refused; expected: at most 0'],
  ['columns=user_id,plan,seats', fileOf(1), 'columns: missing: seats'],
  ['columns=user_id', fileOf(1), 'columns: new: plan'],
])('the guard %s holds a file that differs from it', (text, file, message) => {
  const guard = readVolumeGuard(text) ?? 'usual';
  expect(surprises(guard, file, [])).toEqual([message]);
});

test('the guard `usual` holds nothing until three files were loaded', () => {
  expect(surprises('usual', fileOf(1), [fileOf(1_000), fileOf(1_000)])).toEqual([]);
});

test.each([
  [fileOf(749), ['rows: 749 rows; usual: 750 to 1,275']],
  [fileOf(750), []],
  [fileOf(1_275), []],
  [fileOf(1_276), ['rows: 1,276 rows; usual: 750 to 1,275']],
  [fileOf(1_000, 30), []],
  [fileOf(1_000, 31), ['rejected: 31 of 1,000 records refused; usual: at most 30']],
  [fileOf(1_000, 0, ['user_id']), ['columns: missing: plan']],
  [fileOf(1_000, 0, [...columns, 'seats']), []],
  [fileOf(1_000, 0, [...columns, 'price']), ['columns: new: price']],
])('the guard `usual` compares %j with earlier loads', (file, expected) => {
  const past = [fileOf(1_000), fileOf(1_020), fileOf(1_000, 20, [...columns, 'seats'])];
  expect(surprises('usual', file, past)).toEqual(expected);
});

test('the guard `usual` allows small files ten more rows', () => {
  const past = [fileOf(12), fileOf(11), fileOf(12)];
  expect(surprises('usual', fileOf(22), past)).toEqual([]);
  expect(surprises('usual', fileOf(23), past)).toHaveLength(1);
});

// proves: guard-usual
test('the guard `usual` never holds a file with the figures of an earlier one', () => {
  const figures = fc
    .tuple(fc.nat(1e6), fc.float({ min: 0, max: 1, noNaN: true }), fc.subarray(['a', 'b', 'c']))
    .map(([rows, share, names]) => fileOf(rows, Math.floor(rows * share), names));
  fc.assert(
    fc.property(fc.array(figures, { minLength: 1, maxLength: 10 }), fc.nat(), (past, at) => {
      const like = past[at % past.length] ?? fileOf(0);
      expect(findSurprises('usual', like, past)).toEqual([]);
    }),
  );
});
