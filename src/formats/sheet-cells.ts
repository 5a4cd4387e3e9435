import { DamagedFile } from '../base/errors.ts';
import { MAX_VALUE_BYTES, MiB } from '../base/limits.ts';
import { type CsvText, csvCell } from './csv-text.ts';
import { type NumberKind, numberText, temporalText } from './workbook-numbers.ts';
import type { XmlAttributes, XmlHandler } from './xml-reader.ts';

export const MAX_SHARED_TEXT_BYTES = 128 * MiB;
const MAX_SHEET_ROWS = 1_048_576;
const MAX_SHEET_COLUMNS = 16_384;
/** Maximum length of a cell. Excel itself allows only 32 767 characters. */
export const MAX_CELL_CHARS = MAX_VALUE_BYTES;

export interface CellContext {
  readonly shared: SharedText;
  /** Kind of number for each style of the workbook. */
  readonly kinds: readonly NumberKind[];
  readonly from1904: boolean;
  /** True if the writer of the workbook stored no results of formulas. */
  readonly isUncalculated: boolean;
}

interface Count {
  count: number;
  first: string;
}

interface Cell {
  readonly row: number;
  readonly column: number;
  readonly type: string;
  readonly style: number;
  hasFormula: boolean;
  value: string | null;
}

const noCell: Cell = { row: 0, column: 0, type: '', style: 0, hasFormula: false, value: null };

/** Writes the cells of a sheet as CSV. Throws only `DamagedFile`. */
export class SheetCells implements XmlHandler {
  readonly errors: Count = { count: 0, first: '' };
  readonly noDates: Count = { count: 0, first: '' };
  /** The first range of merged cells. Empty if there is none. */
  merged = '';
  readonly #context: CellContext;
  readonly #csv: CsvText;
  #row = 0;
  #column = 0;
  #cell = noCell;
  #inCell = false;
  #inValue = false;

  constructor(context: CellContext, csv: CsvText) {
    this.#context = context;
    this.#csv = csv;
  }

  get isFull(): boolean {
    return this.#csv.hasReady;
  }

  open(name: string, attributes: XmlAttributes): void {
    if (this.#inCell) this.#openInCell(name);
    else if (name === 'c') this.#openCell(attributes);
    else if (name === 'row') this.#openRow(attributes['r']);
    else if (name === 'mergeCell') this.merged ||= attributes['ref'] ?? '';
  }

  close(name: string): void {
    if (!this.#inCell) return;
    if (name === 'c') {
      this.#inCell = false;
      this.#write(this.#cell);
    } else if (name === 'v' || name === 't') this.#inValue = false;
  }

  text(text: string): void {
    if (!this.#inValue) return;
    const value = (this.#cell.value ?? '') + text;
    if (value.length > MAX_CELL_CHARS) {
      throw new DamagedFile(`cell ${nameOf(this.#cell)} has more than ${MAX_CELL_CHARS} characters`);
    }
    this.#cell.value = value;
  }

  #openRow(reference: string | undefined): void {
    const row = reference === undefined ? this.#row + 1 : Number(reference);
    if (!Number.isInteger(row) || row <= this.#row || row > MAX_SHEET_ROWS) {
      throw new DamagedFile(`row ${reference} follows row ${this.#row}`);
    }
    this.#row = row;
    this.#column = 0;
  }

  #openCell({ r: reference, t: type = 'n', s: style = '0' }: XmlAttributes): void {
    const column = reference === undefined ? this.#column + 1 : columnOf(reference);
    if (this.#row === 0 || column <= this.#column || column > MAX_SHEET_COLUMNS) {
      throw new DamagedFile(
        `cell ${reference ?? ''} stands in row ${this.#row} after column ${this.#column}`,
      );
    }
    this.#column = column;
    this.#cell = { row: this.#row, column, type, style: Number(style), hasFormula: false, value: null };
    if (reference !== undefined && reference !== nameOf(this.#cell)) {
      throw new DamagedFile(`cell ${reference} stands in row ${this.#row}`);
    }
    this.#inCell = true;
  }

  #openInCell(name: string): void {
    if (name === 'v') this.#cell.value = '';
    if (name === 'v' || name === 't') this.#inValue = true;
    else if (name === 'f') this.#cell.hasFormula = true;
  }

  #write(cell: Cell): void {
    if (cell.hasFormula) this.#checkFormula(cell);
    if (cell.value === null) return;
    const bytes = this.#read(cell, cell.value);
    if (bytes !== null && bytes.length > 0) this.#csv.cell(cell.row, cell.column, bytes);
  }

  #checkFormula(cell: Cell): void {
    const { isUncalculated } = this.#context;
    if (isUncalculated || ((cell.value ?? '') === '' && cell.type !== 'str')) {
      throw new DamagedFile(
        `cell ${nameOf(cell)} holds a formula whose result is not in the file; open it in a spreadsheet program, save it, and send that`,
      );
    }
  }

  #read(cell: Cell, value: string): Buffer | null {
    switch (cell.type) {
      case 's':
        return this.#shared(cell, value);
      case 'n':
        return this.#number(cell, value.trim());
      case 'str':
      case 'inlineStr':
        return csvCell(unescapeText(value));
      case 'd':
        return csvCell(value.trim());
      case 'b':
        return this.#boolean(cell, value.trim());
      case 'e':
        return countEmpty(this.errors, cell);
      default:
        throw new DamagedFile(`cell ${nameOf(cell)} has the type ${cell.type}`);
    }
  }

  #shared(cell: Cell, value: string): Buffer {
    const bytes = /^\s*\d+\s*$/.test(value) ? this.#context.shared.get(Number(value)) : null;
    if (bytes === null) throw new DamagedFile(`cell ${nameOf(cell)} has a text that is not there`);
    return bytes;
  }

  #boolean(cell: Cell, value: string): Buffer {
    if (value !== '0' && value !== '1')
      throw new DamagedFile(`cell ${nameOf(cell)} is neither true nor false`);
    return value === '1' ? TRUE : FALSE;
  }

  #number(cell: Cell, value: string): Buffer | null {
    if (value === '') return null;
    const text = numberText(value);
    if (text === null) throw new DamagedFile(`cell ${nameOf(cell)} is no number`);
    const kind = this.#kindOf(cell);
    if (kind === 'number') return Buffer.from(text, 'latin1');
    if (typeof kind === 'object') {
      return Buffer.from(/^\d+$/.test(text) ? text.padStart(kind.digits, '0') : text, 'latin1');
    }
    const iso = temporalText(kind, Number(text), this.#context.from1904);
    return iso === null ? countEmpty(this.noDates, cell) : Buffer.from(iso, 'latin1');
  }

  #kindOf(cell: Cell): NumberKind {
    const { kinds } = this.#context;
    const kind = kinds[cell.style];
    if (kind !== undefined || kinds.length === 0) return kind ?? 'number';
    throw new DamagedFile(`cell ${nameOf(cell)} has a style that is not there`);
  }
}

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');

function countEmpty(tally: Count, cell: Cell): null {
  tally.first ||= nameOf(cell);
  tally.count++;
  return null;
}

function columnOf(reference: string): number {
  let column = 0;
  for (let at = 0; at < 4; at++) {
    const letter = reference.charCodeAt(at) - 64;
    if (!(letter >= 1 && letter <= 26)) break;
    column = 26 * column + letter;
  }
  return column === 0 ? Number.POSITIVE_INFINITY : column;
}

function nameOf({ row, column }: Cell): string {
  let letters = '';
  for (let rest = column; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters;
  }
  return `${letters}${row}`;
}

const BLOCK_BYTES = 1024 * 1024;
const STRING_BYTES = 8;

/**
 * Keeps the strings in blocks of bytes, because a million string objects would need several times
 * as much memory.
 */
class SharedText {
  readonly #blocks: Buffer[] = [];
  #used = 0;
  #totalBytes = 0;
  /** For each string, the number of its block and its end in that block. */
  #places = new Uint32Array(1024);
  #count = 0;

  /**
   * Adds a string.
   * @throws DamagedFile if all strings together are too large
   */
  add(bytes: Buffer): void {
    this.#totalBytes += bytes.length + STRING_BYTES;
    if (this.#totalBytes > MAX_SHARED_TEXT_BYTES)
      throw new DamagedFile('it has more text than is held in memory; save it as CSV and send that');
    let block = this.#blocks.at(-1);
    if (block === undefined || this.#used + bytes.length > block.length) {
      block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, bytes.length));
      this.#blocks.push(block);
      this.#used = 0;
    }
    this.#used += bytes.copy(block, this.#used);
    if (2 * this.#count === this.#places.length) {
      const smaller = this.#places;
      this.#places = new Uint32Array(2 * smaller.length);
      this.#places.set(smaller);
    }
    this.#places.set([this.#blocks.length - 1, this.#used], 2 * this.#count++);
  }

  get(index: number): Buffer | null {
    if (index >= this.#count) return null;
    const block = this.#places[2 * index] as number;
    const isFirst = index === 0 || this.#places[2 * index - 2] !== block;
    const start = isFirst ? 0 : this.#places[2 * index - 1];
    return this.#blocks[block]?.subarray(start, this.#places[2 * index + 1]) ?? null;
  }
}

/** Replaces codes such as `_x000D_`, which stand for characters that XML cannot contain. */
function unescapeText(text: string): string {
  if (!text.includes('_x')) return text;
  return text.replace(/_x([0-9a-fA-F]{4})_/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

export class SharedTextReader implements XmlHandler {
  readonly texts = new SharedText();
  #text = '';
  #inText = false;

  open(name: string): void {
    if (name === 'si') this.#text = '';
    else if (name === 't') this.#inText = true;
  }

  close(name: string): void {
    if (name === 't') this.#inText = false;
    else if (name === 'si') this.texts.add(csvCell(unescapeText(this.#text)));
  }

  text(text: string): void {
    if (!this.#inText) return;
    this.#text += text;
    if (this.#text.length > MAX_CELL_CHARS) {
      throw new DamagedFile(`a text that cells share has more than ${MAX_CELL_CHARS} characters`);
    }
  }
}
