/*
 * Cells that a spreadsheet would run when it opens a CSV, and how such a cell is defused and made whole again. The one definition:
 * exports build their SQL from it (`src/export/write/csv.ts`).
 *
 * A formula begins with = + - @ or their full-width forms, or with a tab or line break that some programs drop before they
 * look. A number begins with a sign too, and does no harm. A defused cell has an apostrophe in front. So has a cell that only
 * looks like a defused one: whoever takes one apostrophe off what looks so has each cell back as it was.
 */

/** The code points of tab, LF, CR, + - = @ and the full-width ＋ － ＝ ＠. */
export const formulaStarts: readonly number[] = [
  9, 10, 13, 0x2b, 0x2d, 0x3d, 0x40, 0xff0b, 0xff0d, 0xff1d, 0xff20,
];
/** Means the same in JavaScript and in PostgreSQL. */
export const numeral = '^[-+]?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?$';
export const apostrophe = "'";

const starts: ReadonlySet<number> = new Set(formulaStarts);
const isNumeral = new RegExp(numeral);

function needsDefusing(cell: string): boolean {
  let start = 0;
  while (cell[start] === apostrophe) start++;
  if (!starts.has(cell.charCodeAt(start))) return false;
  return !isNumeral.test(start === 0 ? cell : cell.slice(start));
}

export function defuse(cell: string): string {
  return needsDefusing(cell) ? apostrophe + cell : cell;
}

export function undoDefuse(cell: string): string {
  return isDefused(cell) ? cell.slice(1) : cell;
}

export function isDefused(cell: string): boolean {
  return cell.startsWith(apostrophe) && needsDefusing(cell);
}
