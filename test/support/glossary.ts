import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { packageRoot } from '../../src/package-root.ts';

/** Returns the words of docs/glossary.md, each with the first sentence that it says of it. */
export function readGlossary(): ReadonlyMap<string, string> {
  const text = readFileSync(resolve(packageRoot, 'docs', 'glossary.md'), 'utf8');
  const rows = text.matchAll(/^\| (?!word|---)(.+?) \| (.+?) \|$/gm);
  return new Map(
    [...rows].flatMap(([, words = '', meaning = '']) => {
      const [sentence = ''] = meaning.replace(/[`*]/g, '').split('. ');
      return words.split(', ').map((word) => [word.replaceAll('`', ''), sentence] as const);
    }),
  );
}
