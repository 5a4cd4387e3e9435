// Finds, defuses and restores cells that a spreadsheet would run as formulas. Exports build their
// SQL from the same definitions (`src/export/write/csv.ts`). A formula begins with = + - @ or a
// full-width form, possibly after a tab or line break, which some programs ignore. A signed number
// is not a formula. Defusing adds an apostrophe even to a cell that looks defused. Therefore,
// removing one apostrophe from every defused cell restores the originals.

/** Characters with which a formula may begin: tab, LF, CR, + - = @ and the full-width ＋ － ＝ ＠. */
export const formulaStarts: readonly number[] = [
  9, 10, 13, 0x2b, 0x2d, 0x3d, 0x40, 0xff0b, 0xff0d, 0xff1d, 0xff20,
];
/** Pattern of a number. It has the same meaning in JavaScript and in PostgreSQL. */
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
