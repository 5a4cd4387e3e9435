/** What a cell looks like, where a dialect or a header is looked for. Nothing is ever read as one of these. */
export type CellKind = 'empty' | 'number' | 'date' | 'mail' | 'address' | 'uuid' | 'word' | 'other';

/** A longer cell is a text, whatever is in it. */
const maxKindChars = 200;

const kinds: readonly (readonly [CellKind, RegExp])[] = [
  ['number', /^[-+]?[$€£]?(?:\d+|\d{1,3}(?:[,. ']\d{3})+)(?:[.,]\d+)?(?:[eE][-+]?\d+)?\s?[%€$£]?$/],
  ['date', /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s?(?:Z|[-+]\d{2}:?\d{2}|UTC)?)?$/],
  ['date', /^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}(?:,? \d{1,2}:\d{2}(?::\d{2})?(?: ?[AP]M)?)?$/i],
  ['date', /^\d{1,2}:\d{2}(?::\d{2})?(?: ?[AP]M)?$/i],
  ['mail', /^[^\s@,;|"']+@[^\s@,;|"']+\.[^\s@,;|"']+$/],
  ['address', /^https?:\/\/[^\s"]+$/i],
  ['uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i],
  ['word', /^[\p{L}\p{N}_][\p{L}\p{N}\p{M}_.\-'/()& ]*$/u],
];

export function kindOf(cell: string): CellKind {
  const text = cell.trim();
  if (text === '') return 'empty';
  if (text.length > maxKindChars) return 'other';
  return kinds.find(([, pattern]) => pattern.test(text))?.[0] ?? 'other';
}

/** Whether a name of a column is hardly ever written like that. */
export function isData(kind: CellKind): boolean {
  return kind === 'number' || kind === 'date' || kind === 'mail' || kind === 'address' || kind === 'uuid';
}
