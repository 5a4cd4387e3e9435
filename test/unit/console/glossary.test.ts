import { expect, test } from 'vitest';
import { glossary } from '../../../src/console/client/lib/glossary.ts';
import { readGlossary } from '../../support/glossary.ts';

test('the console explains a word as the glossary does', () => {
  const said = readGlossary();
  for (const [word, meaning] of Object.entries(glossary))
    expect([word, said.get(word)]).toEqual([word, meaning]);
});
