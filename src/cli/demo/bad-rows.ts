import { userCells } from './csv-lines.ts';

/** Lines of a users CSV that must be refused, each for another reason, as real files have them. */
export function badLines(companies: number): Buffer[] {
  const plain = (n: number): string[] => userCells(n, companies).map((cell) => cell.replaceAll(/[",]/g, ''));
  const line = (cells: readonly string[]): Buffer => Buffer.from(`${cells.join(',')}\n`);
  const replaced = (n: number, column: number, cell: string): string[] =>
    plain(n).map((old, index) => (index === column ? cell : old));
  return [
    // No id.
    line(replaced(1, 0, '')),
    // Cells missing at the end; a comma that nobody quoted.
    line(plain(2).slice(0, 6)),
    line(replaced(3, 4, 'Founder, CEO')),
    // Quotes inside a quoted cell that nobody doubled.
    line(replaced(4, 2, '"Robert "Bob" Miller"')),
    // What Postgres cannot store.
    line(replaced(5, 2, 'Null\u0000Byte')),
    // An id of 300 characters, a cell of 70 KiB.
    line(replaced(6, 0, `usr_${'x'.repeat(296)}`)),
    line(replaced(7, 4, 'y'.repeat(70 * 1024))),
    // Latin-1 amid UTF-8.
    Buffer.from(`${replaced(8, 2, 'Jos\u00e9 Garc\u00eda').join(',')}\n`, 'latin1'),
  ];
}
