import { expect, test } from 'vitest';
import { DatedBuffer } from '../../../src/mapping/dated-buffer.ts';
import { REMOVES, UNCOUNTED } from '../../../src/mapping/row-buffer.ts';
import { Rows } from '../../../src/mapping/rows.ts';

test('each record keeps a row of its own, in the order of the file', () => {
  const dated = new DatedBuffer();
  dated.add('users', 'k', '2020-01-01T00:00:00.000000Z', '"a":1', 'acme', 0, 0);
  dated.add('users', 'k', null, '"a":null', null, REMOVES, 3);
  dated.add('companies', 'acme', null, '', null, UNCOUNTED, 3);
  expect(dated.users.text().toString()).toBe(
    'k\t0\t2020-01-01T00:00:00.000000Z\t{"a":1}\tacme\t0\nk\t3\t\\N\t{"a":null}\t\\N\t1\n',
  );
  expect(dated.companies.text().toString()).toBe('acme\t3\t\\N\t{}\t\\N\t2\n');
  expect([dated.rows, dated.users.counted, dated.companies.counted]).toEqual([3, 2, 0]);
  expect([dated.users.removes, dated.companies.removes]).toEqual([true, false]);
});

test('rows of some records can be left out', () => {
  const dated = new DatedBuffer();
  for (const record of [4, 5, 6]) dated.add('users', `k${record}`, null, '', null, 0, record);
  const includes = (record: number): boolean => record !== 5;
  expect(dated.users.text(includes).toString()).toBe('k4\t4\t\\N\t{}\t\\N\t0\nk6\t6\t\\N\t{}\t\\N\t0\n');
  expect(dated.users.countedAmong(includes)).toBe(2);
  expect(dated.users.records()).toEqual([4, 5, 6]);
});

test('rows without a time come as their buffer has them, a repeated key as several rows', () => {
  const rows = new Rows();
  rows.add('users', 'é\\tx', '"a":1', 'acme', REMOVES, 0);
  rows.add('users', 'é\\tx', '"a":2', null, UNCOUNTED, 7);
  const dated = new DatedBuffer();
  dated.addUndated('users', rows.users);
  expect(dated.users.text().toString('latin1')).toBe(
    'é\\tx\t0\t\\N\t{"a":1}\tacme\t1\né\\tx\t7\t\\N\t{"a":2}\t\\N\t2\n',
  );
  expect(dated.users.counted).toBe(1);
  expect(dated.users.removes).toBe(true);
});
