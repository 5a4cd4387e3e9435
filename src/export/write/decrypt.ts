import { defuse } from '../../domain/formula.ts';
import { csvCell } from '../../formats/csv-text.ts';
import type { PersonalValues } from '../../personal/values.ts';
import type { RowBlock } from './rows.ts';

interface Decryption {
  readonly values: PersonalValues;
  /** The rows are CSV; otherwise values, of which texts are JSON. */
  readonly isCsv: boolean;
  readonly escapeFormulas: boolean;
}

/** Decrypts the encrypted values in rows as COPY sends them: in clear they are in the files alone. */
export async function* decryptBlocks(
  blocks: AsyncGenerator<RowBlock, number>,
  { values, isCsv, escapeFormulas }: Decryption,
): AsyncGenerator<RowBlock, number> {
  const cellOf = (cell: string) => csvCell(escapeFormulas ? defuse(cell) : cell).toString('utf8');
  const decryptRow = isCsv
    ? (row: string) => row.replace(csvCells, (cell) => decryptCell(cell, values, cellOf))
    : (row: string) => values.decryptJson(row);
  let next = await blocks.next();
  try {
    for (; next.done !== true; next = await blocks.next()) yield decryptBlock(next.value, decryptRow);
  } finally {
    if (next.done !== true) await blocks.return(0);
  }
  return next.value;
}

const csvCells = /"(?:[^"]|"")*"|[^,"\n]+/g;
const mark = 'enc:';

function decryptCell(cell: string, values: PersonalValues, cellOf: (cell: string) => string): string {
  if (!cell.includes(mark)) return cell;
  const text = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
  const clear = values.decrypt(values.decryptJson(text));
  return clear === text ? cell : cellOf(clear);
}

function decryptBlock(block: RowBlock, decryptRow: (row: string) => string): RowBlock {
  if (!block.bytes.includes(mark)) return block;
  const ends: number[] = [];
  let [start, length] = [0, 0];
  const rows = block.ends.map((end) => {
    const row = block.bytes.subarray(start, end);
    const clear = row.includes(mark) ? Buffer.from(decryptRow(row.toString('utf8'))) : row;
    start = end;
    length += clear.length;
    ends.push(length);
    return clear;
  });
  return { bytes: Buffer.concat(rows), ends };
}
