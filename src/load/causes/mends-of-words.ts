import { undoDefuse } from '../../domain/formula.ts';
import { isNullWord } from '../../domain/reject.ts';
import type { Mend } from './mend.ts';
import { likelyKind } from './refused-values.ts';

/** White space, and characters that nobody sees. */
const unseen = /[\s\u200b-\u200f\u2060\ufeff]/;

/** Removes hidden characters at both ends, from the outside in: an expression that ends with `+$` would start again at every blank inside. */
function trimUnseen(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && unseen.test(text.charAt(start))) start++;
  while (start < end && unseen.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

export const mendsOfWords: readonly Mend[] = [
  {
    name: 'trim',
    sentence: 'read without the blanks around it',
    codes: ['invalid_date', 'unknown_event_type', 'unexpected_event_row'],
    value: (text) => {
      const trimmed = trimUnseen(text);
      return trimmed === text || trimmed === '' ? null : trimmed;
    },
  },
  {
    name: 'no-value',
    sentence: 'read as no value',
    codes: ['invalid_date', 'invalid_type', 'invalid_json'],
    value: (text) => (isNullWord(text) || (text !== '' && text.trim() === '') ? '' : null),
    json: (value) => (value === '' ? null : undefined),
  },
  {
    name: 'known-kind',
    sentence: 'read as the kind of record of that name',
    codes: ['unknown_event_type', 'unexpected_event_row'],
    value: (text) => {
      const kind = likelyKind(text);
      return kind === text ? null : kind;
    },
  },
  {
    name: 'apostrophes-removed',
    sentence: 'read without the apostrophes before formulas',
    codes: ['unclear_apostrophe'],
    cells: (raw, readings) => readings.own(raw)?.map(undoDefuse) ?? null,
  },
  {
    name: 'apostrophes-kept',
    sentence: 'read with the apostrophes before formulas as part of the values',
    codes: ['unclear_apostrophe'],
    cells: (raw, readings) => readings.own(raw),
  },
  {
    name: 'no-nul',
    sentence: 'read without the characters U+0000 in it',
    codes: ['nul_character'],
    json: (value) =>
      typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '') : undefined,
    bytes: (raw) => (raw.includes(0) ? raw.toString('utf8').replaceAll('\0', '') : null),
  },
];
