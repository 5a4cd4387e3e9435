import { inputError } from '../domain/errors.ts';
import type { CsvDialect } from './csv-dialect.ts';
import type { CsvSample, Score } from './csv-sample.ts';

/** A dialect, and how well it cuts the records, where no names say so. */
export interface Cut {
  readonly dialect: CsvDialect;
  readonly score: Score;
  readonly points: number;
}

/** A cut with less is none: records of one cell, or of any number. */
const leastPoints = 0.4;
/** Of the best cut's points, more than which another one is as likely. */
const clearShare = 0.95;

/** The dialects that cut records of several cells: evenly, and into cells of known kinds; the best first. */
export function findCuts(sample: CsvSample, dialects: readonly CsvDialect[]): Cut[] {
  const scored = dialects.map((dialect) => {
    const score = sample.score(dialect);
    return { dialect, score, points: score.width > 1 ? score.share ** 2 * (0.3 + 0.7 * score.known) : 0 };
  });
  return scored.filter((each) => each.points >= leastPoints).toSorted((a, b) => b.points - a.points);
}

/**
 * The first of the cuts; null if there is none.
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
