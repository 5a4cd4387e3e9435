import type { RejectCode } from '../../domain/reject.ts';
import type { Mend } from './mend.ts';
import { mendsOfCsv } from './mends-of-csv.ts';
import { mendsOfDates } from './mends-of-dates.ts';
import { mendsOfEncodings } from './mends-of-encodings.ts';
import { mendsOfJson } from './mends-of-json.ts';
import { mendsOfWords } from './mends-of-words.ts';

/**
 * All mends there are. What is missing from a record (an id that nobody wrote) or is too much of it (too deep, too long) is not
 * mended, nor is what the database refuses.
 */
export const mends: readonly Mend[] = [
  ...mendsOfWords,
  ...mendsOfDates,
  ...mendsOfCsv,
  ...mendsOfJson,
  ...mendsOfEncodings,
];

const byName: ReadonlyMap<string, Mend> = new Map(mends.map((mend) => [mend.name, mend]));

export function mendsOf(code: RejectCode): readonly Mend[] {
  return mends.filter((mend) => mend.codes.includes(code));
}

export function findMend(name: string): Mend | null {
  return byName.get(name) ?? null;
}
