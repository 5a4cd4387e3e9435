import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

interface Promised {
  readonly promise: string;
  readonly proof: string;
}

/** The rows of the tables that name tests. */
const promises: Promised[] = readFileSync(join(root, 'docs/guarantees.md'), 'utf8')
  .split('\n')
  .flatMap((line) => {
    const [, promise = '', proof = ''] = line.split('|').map((cell) => cell.trim());
    return proof.includes('test/') ? [{ promise, proof }] : [];
  });

test('docs/guarantees.md has its promises', () => {
  expect(promises.length).toBeGreaterThan(40);
});

test.each(promises)('a test proves: $promise', ({ proof }) => {
  const named = proof.split(/(?=`test\/)/).flatMap((part) => {
    const file = /^`(test\/[^`]+\.test\.ts)`/.exec(part)?.[1];
    return file === undefined ? [] : [{ file, titles: [...part.matchAll(/"([^"]+)"/g)] }];
  });
  expect(named.length).toBeGreaterThan(0);
  for (const { file, titles } of named) {
    expect(existsSync(join(root, file)), file).toBe(true);
    expect(titles.length, `titles of ${file}`).toBeGreaterThan(0);
    const source = readFileSync(join(root, file), 'utf8');
    for (const [, title = ''] of titles) {
      const isThere = ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote},`));
      expect(isThere ? '' : `${file}: no test "${title}"`).toBe('');
    }
  }
});
