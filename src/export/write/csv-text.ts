import { type RawBuilder, sql } from 'kysely';
import { apostrophe, defuse, formulaStarts, numeral } from '../../domain/formula.ts';

const codes = sql.join(formulaStarts.map((code) => sql.lit(code)));

/**
 * `defuse` in SQL. By the number of the first character: a regular expression for every cell would take far longer. Hardly
 * any cell has an apostrophe to be looked behind.
 */
export function defused(cell: RawBuilder<string>): RawBuilder<string> {
  const behind = sql`ltrim(${cell}, ${sql.lit(apostrophe)})`;
  return sql`case
    when ascii(${cell}) in (${codes}) and ${cell} !~ ${sql.lit(numeral)} then ${sql.lit(apostrophe)} || ${cell}
    when ascii(${cell}) = ${sql.lit(apostrophe.charCodeAt(0))}
      and ascii(${behind}) in (${codes})
      and ${behind} !~ ${sql.lit(numeral)}
    then ${sql.lit(apostrophe)} || ${cell}
    else ${cell}
  end`;
}

/**
 * Names that hold what could pass for another delimiter are quoted: a load finds the delimiter from the header. If cells are
 * left as they are, so is the last name quoted: that is how a load knows that there is nothing to undo (`csv-header.ts`).
 */
export function csvHeader(names: readonly string[], escapeFormulas: boolean): Buffer {
  const cells = names.map((name) => (escapeFormulas ? defuse(name) : name));
  const quoted = cells.map((cell, index) =>
    /[",;|\t\r\n]|^\s|\s$/.test(cell) || (!escapeFormulas && index === cells.length - 1)
      ? `"${cell.replaceAll('"', '""')}"`
      : cell,
  );
  return Buffer.from(`${quoted.join(',')}\n`);
}
