import { expect, test } from 'vitest';
import { classifyName, placedNames } from '../../../src/capabilities/inbox/context.ts';

const fileId = '01a1f9bc-dcef-7d92-823d-9ad39648de07';

test('the name of a dropped file decides whether it is loaded, left alone or unknown', () => {
  for (const name of [
    'a.csv',
    'A.CSV',
    'b.ndjson',
    'c.jsonl',
    'd.json',
    'e.csv.gz',
    'f.JSON.GZ',
    '-x.csv',
    'a b.csv',
    'g.xlsx',
    'h.csv.zip',
  ]) {
    expect(classifyName(name), name).toBe('loadable');
  }
  for (const name of ['.a.csv', 'a.csv.part', 'a.csv.TMP', 'a.csv.filepart', 'a.csv.crdownload', 'a.csv~']) {
    expect(classifyName(name), name).toBe('left');
  }
  for (const name of ['mapping.yaml', 'mapping.yaml.error', 'users', 'companies', 'done', 'failed']) {
    expect(classifyName(name), name).toBe('left');
  }
  for (const name of ['a.txt', 'csv', 'a.xls', 'a.csv.done', 'mapping.yml'])
    expect(classifyName(name), name).toBe('unknown');
});

test('placed names are unique, and short enough for the names of their receipts', () => {
  const names = [...placedNames('users.csv.gz', fileId)];
  expect(names).toEqual(['users.csv.gz', 'users-9ad39648de07.csv.gz']);
  for (const stem of ['x'.repeat(251), 'é'.repeat(125), `a${'😀'.repeat(62)}`]) {
    for (const name of placedNames(`${stem}.csv`, fileId)) {
      expect(Buffer.byteLength(`${name}.receipt.json`), name).toBeLessThanOrEqual(255);
      expect(name).not.toContain('\uFFFD');
    }
  }
});
