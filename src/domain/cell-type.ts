/** Cells of a column without a type are strings. */
export const cellTypes = ['number', 'decimal_comma', 'boolean', 'date', 'day_first', 'month_first'] as const;
export type CellType = (typeof cellTypes)[number];

/** Reads `Their Header=number`. Returns `undefined` for any other text. */
export function readCellType(text: string): readonly [column: string, type: CellType] | undefined {
  const at = text.lastIndexOf('=');
  const column = text.slice(0, Math.max(0, at)).trim();
  const type = cellTypes.find((each) => each === text.slice(at + 1).trim());
  return column === '' || type === undefined ? undefined : [column, type];
}
