import { type RawBuilder, sql } from 'kysely';

/** What makes a spreadsheet run a cell. A number begins with a sign too, and does no harm. */
const formula = /^[=+\-@\t\r]/;
const numeral = '^[-+]?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?$';
const isNumeral = new RegExp(numeral);

export function escapeFormula(cell: string): string {
  return formula.test(cell) && !isNumeral.test(cell) ? `'${cell}` : cell;
}

/** The same in SQL. By the number of the first character: a regular expression for every cell would take far longer. */
export function cellIsFormula(cell: RawBuilder<string>): RawBuilder<boolean> {
  return sql`(ascii(${cell}) in (9, 13, 43, 45, 61, 64) and ${cell} !~ ${sql.lit(numeral)})`;
}

/** Names that hold what could pass for another delimiter are quoted: a load finds the delimiter from the header. */
export function csvHeader(names: readonly string[], escapeFormulas: boolean): Buffer {
  const cells = names.map((name) => (escapeFormulas ? escapeFormula(name) : name));
  const quoted = cells.map((cell) =>
    /[",;|\t\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell,
  );
  return Buffer.from(`${quoted.join(',')}\n`);
}
