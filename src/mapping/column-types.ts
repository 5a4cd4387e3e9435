import { type DataType, dataTypeOf, widen } from '../domain/data-type.ts';
import type { ColumnPlan } from './column-plan.ts';
import type { CsvCells } from './csv-cells.ts';
import type { PropertyTypes } from './property-types.ts';

/**
 * Of what type the columns of a CSV are, by the first rows of a chunk: a column is of dates if all its cells there are
 * dates, empty ones aside, and of strings otherwise. Later rows are not looked at: it would cost something per cell.
 */
export class ColumnTypes {
  readonly #names: readonly string[];
  /** Columns that are properties. */
  readonly #columns: readonly number[];
  /** Per column: null while all its cells were empty. */
  readonly #types: (DataType | null)[];

  constructor(plan: ColumnPlan) {
    this.#names = plan.names;
    this.#columns = [...plan.roles.keys()].filter((column) => plan.roles[column] === 'property');
    this.#types = plan.roles.map(() => null);
  }

  reset(): void {
    this.#types.fill(null);
  }

  /** Notes the record whose cells these are (byte strings). */
  noteCells(cells: readonly string[]): void {
    for (const column of this.#columns) this.#note(column, cells[column] ?? '');
  }

  /** Notes the record in bytes [start, end), which was walked last. */
  noteWalked(bytes: Buffer, start: number, end: number, { starts, ends }: CsvCells): void {
    // One string that the cells are cut from: one for each costs several times as much.
    const record = bytes.toString('latin1', start, end);
    for (const column of this.#columns) {
      if (this.#types[column] === 'string') continue;
      this.#note(column, record.slice((starts[column] ?? 0) - start, (ends[column] ?? 0) - start));
    }
  }

  #note(column: number, cell: string): void {
    if (cell === '') return;
    const type = dataTypeOf(cell) ?? 'string';
    this.#types[column] = widen(this.#types[column] ?? type, type);
  }

  /**
   * Passes on what was found. `moreFollowed`: columns without a cell may have one in the rows that nobody looked at, and
   * so are passed on as well, without a type.
   */
  tell(types: PropertyTypes, moreFollowed: boolean): void {
    for (const column of this.#columns) {
      const type = this.#types[column] ?? null;
      if (type !== null || moreFollowed) types.noteColumn(this.#names[column] ?? '', type);
    }
  }
}
