import { automaticProperties } from '../domain/automatic-properties.ts';
import { isRejectColumn } from '../domain/reject-columns.ts';

/** What the first record of a CSV settles for all the others. */
export interface CsvHeader {
  /** One of `,` `;` tab `|`. */
  readonly delimiter: string;
  /** Column names in file order, as written (BOM removed, not trimmed). */
  readonly columns: readonly string[];
  /** Names and cells were defused when we wrote the file (`src/domain/formula.ts`): what was meant is to be made whole. */
  readonly defused?: true;
}

/** In the header of an export whose cells were left as they are; any program reads it like the same without quotes. */
const leftAsItIs = `"${automaticProperties.at(-1)}"`;

/**
 * Whether a file of this header is one that we wrote, with formulas defused: a file of refused records, or an export of
 * profiles. They are known by columns that nobody else has.
 */
export function isDefusedFile(columns: readonly string[], text: string): boolean {
  if (columns.some(isRejectColumn)) return true;
  return automaticProperties.every((name) => columns.includes(name)) && !text.trimEnd().endsWith(leftAsItIs);
}
