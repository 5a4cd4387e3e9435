import { inputError } from '../domain/errors.ts';
import type { CsvDialect } from './csv-dialect.ts';
import type { CsvSample, Score } from './csv-sample.ts';
import { CR, LF } from './record-scanner.ts';

/** The usual delimiters, in order of preference for a header in which several are equally frequent. */
export const commonDelimiters = [',', ';', '\t', '|'] as const;

/** All delimiters that are looked for between names. */
export const delimiters = [
  ...commonDelimiters,
  ...['^', '~', ':', '\x01', '\x1f', '~|~', '|~|', '^|^', '||', '::', ';;', '^^', '~~', '\t\t'],
  // A quote behind the blank keeps the shorter one from being cut at.
  ...[', ', '; ', '| ', ' | ', ' ', 'blanks'],
] as const;

/** The delimiters that tell records from texts even if no name is known. */
export const tellingDelimiters: readonly string[] = [...commonDelimiters, '^', '~', '||', ' ', 'blanks'];

const QUOTE = 34;

/** Reads the line by which Excel learns the delimiter: `sep=;`. */
export function readSeparatorLine(
  bytes: Buffer,
  isWhole: boolean,
): { delimiter: string; end: number } | null {
  const found = /^(?:"sep=([!-~\t ])"|sep=([!-~\t ]))(\r\n|\n|\r)/i.exec(bytes.toString('latin1', 0, 10));
  if (found === null || (bytes.length === found[0].length && !isWhole)) return null;
  return { delimiter: (found[1] ?? found[2]) as string, end: found[0].length };
}

/** Returns the most frequent of the usual delimiters in the first record, outside quotes; `,` for a single column. */
export function frequentDelimiter(bytes: Buffer): string {
  const counts = new Uint32Array(256);
  let quoted = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte === QUOTE) quoted = !quoted;
    else if (quoted) continue;
    else if (byte === LF || byte === CR) break;
    else counts[byte] = (counts[byte] as number) + 1;
  }
  const count = (delimiter: string) => counts[delimiter.charCodeAt(0)] as number;
  return commonDelimiters.reduce<string>((best, each) => (count(each) > count(best) ? each : best), ',');
}

/** A dialect, and how well it cuts the records if no names tell. */
export interface Cut {
  readonly dialect: CsvDialect;
  readonly score: Score;
  readonly points: number;
}

/** A cut with fewer points is none: it gives records of one cell, or of any number. */
const leastPoints = 0.4;
/** Another cut with more than this share of the best one's points is as likely. */
const clearShare = 0.95;

/** Returns the dialects that cut records into several cells, evenly and into cells of known kinds, the best first. */
export function findCuts(sample: CsvSample, dialects: readonly CsvDialect[]): Cut[] {
  const scored = dialects.map((dialect) => {
    const score = sample.score(dialect);
    return { dialect, score, points: score.width > 1 ? score.share ** 2 * (0.3 + 0.7 * score.known) : 0 };
  });
  return scored.filter((each) => each.points >= leastPoints).toSorted((a, b) => b.points - a.points);
}

/**
 * Returns the first of the cuts, or `null`.
 * @throws InputError `invalid_field` if another one is as good.
 */
export function bestCut([best, ...others]: readonly Cut[]): Cut | null {
  if (best === undefined) return null;
  const equal = others.find(
    (each) => each.points > clearShare * best.points && isOther(each.score, best.score),
  );
  if (equal === undefined) return best;
  const [one, two] = [best, equal].map(({ dialect }) => JSON.stringify(dialect.delimiter));
  const message = `The records can be cut at ${one} as well as at ${two}; say which with delimiter`;
  throw inputError('invalid_field', message, 'delimiter');
}

function isOther(a: Score, b: Score): boolean {
  return a.width !== b.width || JSON.stringify(a.records) !== JSON.stringify(b.records);
}
