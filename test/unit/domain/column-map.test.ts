import { describe, expect, test } from 'vitest';
import { readColumnMap, readColumnPairs, resolveMap } from '../../../src/domain/column-map.ts';

describe('a map', () => {
  // proves: map-any-header
  test.each<[string[], object]>([
    [['Kunde=user_id'], { Kunde: 'user_id' }],
    [['a=b', 'c=d, e = f'], { a: 'b', c: 'd', e: 'f' }],
    [['Name, full=name,Id=user_id'], { 'Name, full': 'name', Id: 'user_id' }],
    [['x=y=user_id'], { 'x=y': 'user_id' }],
    [['{"A,b=c":"user_id"," padded ":"name"}'], { 'A,b=c': 'user_id', ' padded ': 'name' }],
    [['{"a":"b"}', 'c=d'], { a: 'b', c: 'd' }],
    [['{x}={y}'], { '{x}': '{y}' }],
    [['1=user_id'], { '1': 'user_id' }],
    [['{"Notes":""}'], { Notes: '' }],
  ])('the map %j names the columns %j', (texts, map) => {
    expect(readColumnMap(texts)).toEqual(map);
  });

  test.each<[string[], RegExp]>([
    [['Id'], /must be pairs/],
    [[''], /must be pairs/],
    [['=a'], /must be pairs/],
    [['{"a":1}'], /must be pairs/],
    [['a='], /must be pairs/],
    [['{}'], /must be pairs/],
    [['{"a":"b"'], /must be pairs/],
    [['a=b', 'a=c'], /gives "a" two names/],
    [['a\0=b'], /U\+0000/],
    [['{"a":"b\\u0000"}'], /U\+0000/],
    [['{"\\ud800":"b"}'], /surrogate/],
  ])('the map %j is refused', (texts, sentence) => {
    expect(readColumnMap(texts)).toMatch(sentence);
  });

  test('a map of the command line has one pair per text, with commas in the header', () => {
    expect(readColumnPairs(['x=1,y=user_id', '{"a":"b"}'])).toEqual({ 'x=1,y': 'user_id', a: 'b' });
    expect(readColumnPairs(['Id'])).toMatch(/must be pairs/);
  });
});

describe('the columns that a map names', () => {
  const columns = ['id', ' Name ', '1', 'column_4'];

  // proves: map-any-header
  test('a number names a column only in a file without a header', () => {
    expect(resolveMap({ '2': 'user_id' }, columns, true)).toEqual({ '2': 'user_id' });
    expect(resolveMap({ '2': 'user_id' }, ['column_1', 'column_2'], false)).toEqual({ column_2: 'user_id' });
    expect(resolveMap({ '1': 'user_id' }, columns, false)).toEqual({ '1': 'user_id' });
  });

  test('a position names a column if no column has that name', () => {
    expect(resolveMap({ column_2: 'user_id', column_4: 'n' }, columns, true)).toEqual({
      ' Name ': 'user_id',
      column_4: 'n',
    });
    expect(resolveMap({ column_9: 'user_id' }, columns, true)).toEqual({ column_9: 'user_id' });
    expect(() => resolveMap({ column_1: 'user_id', id: 'n' }, columns, true)).toThrow('two names');
  });

  test('a map that gives one column two names is refused', () => {
    expect(() => resolveMap({ Name: 'name', ' Name ': 'n' }, columns, true)).toThrow(
      'map gives " Name " two names',
    );
  });
});
