import type { Reason } from '../../domain/reject.ts';
import { escapeCopy } from '../../formats/json-text.ts';
import { type CellList, kind as cellKind, type RecordCells } from './cells.ts';
import { canBeId, isBlank, isWhole, textOf } from './fields.ts';
import type { KnownName } from './known-names.ts';
import { idLengthProblem, missingId, notAnId, textProblem } from './reasons.ts';
import { NESTED, REMOVES } from './row-buffer.ts';

const TAB = 9;
const QUOTE = 0x22;
const COMMA = 0x2c;
const CAPITAL_N = 0x4e;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const noKind = -1;
const ZERO = 0x30;
const LETTER_U = 0x75;

/** Maximum length for which a loop is faster than `copy`. */
const SHORT_BYTES = 48;
/** Escaping can turn one byte of a cell into this many bytes, as in `\\u001f`. */
export const MAX_ESCAPED_BYTES = 7;

type LengthProblem = (bytes: number, column: string) => Reason | null;

/** Writes a row after the last row of a buffer. `endRow` makes it a part of the buffer. */
export class RowText {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #flags = 0;

  get at(): number {
    return this.#at;
  }

  /** `REMOVES` if a property is null, and `NESTED` if a property is an object or an array. */
  get flags(): number {
    return this.#flags;
  }

  /** Starts a row at `at`. The buffer must have space for the whole row. */
  begin(bytes: Buffer, at: number): void {
    this.#bytes = bytes;
    this.#at = at;
    this.#flags = 0;
  }

  addTab(): void {
    this.#bytes[this.#at++] = TAB;
  }

  addNull(): void {
    this.#bytes[this.#at++] = BACKSLASH;
    this.#bytes[this.#at++] = CAPITAL_N;
  }

  /** Adds a byte string that needs no escaping. */
  add(text: string): void {
    this.#at += this.#bytes.write(text, this.#at, 'latin1');
  }

  /** Skips the bytes up to `end`, which the caller writes. */
  skipTo(end: number): void {
    this.#at = end;
  }

  /**
   * Adds an id that must not be missing. Like the methods below, returns the reason for refusing
   * the record, or `null`.
   */
  addRequired(cells: RecordCells, field: number, column: string): Reason | null {
    const cell = cells.fields[field] ?? -1;
    if (cell === -1 || cells.own.kinds[cell] === cellKind.null) return missingId(column);
    return this.addId(cells, field, column);
  }

  addId(cells: RecordCells, field: number, column: string): Reason | null {
    if (!canBeId(cells, field)) return notAnId(column);
    return isBlank(cells, field)
      ? idLengthProblem(0, column)
      : this.addText(cells, field, column, idLengthProblem);
  }

  /**
   * Adds the text of a field. Numbers are written like strings. `problemOf` checks the length of
   * the text.
   */
  addText(cells: RecordCells, field: number, column: string, problemOf: LengthProblem): Reason | null {
    const { own } = cells;
    const cell = cells.fields[field] ?? -1;
    const kind = own.kinds[cell] ?? 0;
    const start = own.starts[cell] ?? 0;
    const end = own.ends[cell] ?? 0;
    if (kind === cellKind.text || (kind === cellKind.number && isWhole(own.bytes, start, end))) {
      this.#at = copyPlain(own.bytes, start, end, this.#bytes, this.#at);
      return problemOf(end - start, column);
    }
    if (kind > cellKind.number)
      return { code: 'invalid_id', message: `${column} must be a string or a number`, column };
    const text = textOf(cells, field);
    const problem = textProblem(text, column);
    if (problem !== null) return problem;
    this.add(escapeCopy(text));
    return problemOf(text.length, column);
  }

  /**
   * Adds the properties of a record. If a name is repeated, jsonb stores the last value. Therefore,
   * `metadata` takes precedence over the other cells, and all cells over `page`.
   */
  addProperties(cells: RecordCells, shape: Uint8Array, page: string, leavesNulls: boolean): void {
    this.#bytes[this.#at++] = OPEN;
    const first = this.#at;
    const excludedKind = leavesNulls ? cellKind.null : noKind;
    if (page !== '') this.add(page);
    this.#addList(cells.own, shape, first, excludedKind);
    if (cells.metadata.count > 0) this.#addList(cells.metadata, shape, first, excludedKind);
    this.#bytes[this.#at++] = CLOSE;
  }

  /** This method must be fast, because it is called for every property of every record. */
  #addList(list: CellList, shape: Uint8Array, first: number, excludedKind: number): void {
    const { count, names, starts, ends, kinds, order, isCsv, bytes } = list;
    const target = this.#bytes;
    let to = this.#at;
    for (let number = 0; number < count; number++) {
      const cell = order?.[number] ?? number;
      const { role, prefix } = names[cell] as KnownName;
      let from = starts[cell] as number;
      const end = ends[cell] as number;
      const kind = kinds[cell] as number;
      if (shape[role] === 0 || (isCsv && from === end) || kind === excludedKind) continue;
      if (to !== first) target[to++] = COMMA;
      for (let at = 0; at < prefix.length; at++) target[to++] = prefix[at] as number;
      if (kind !== cellKind.text || end - from > SHORT_BYTES) {
        to = this.#addRare(list, cell, target, to);
        continue;
      }
      target[to++] = QUOTE;
      for (; from < end; from++) target[to++] = bytes[from] as number;
      target[to++] = QUOTE;
    }
    this.#at = to;
  }

  #addRare(list: CellList, cell: number, target: Buffer, at: number): number {
    const kind = list.kinds[cell];
    if (kind === cellKind.null) this.#flags |= REMOVES;
    else if (kind === cellKind.container) this.#flags |= NESTED;
    return copyJson(list, cell, target, at);
  }
}

/* Copies cells byte by byte, because creating a string for each cell would be slow. */

/**
 * How JSON escapes each byte: the letter after the backslash, or `numbered` for \u00 and two
 * digits. 0 for bytes that need no escape.
 */
const numbered = 1;
const jsonEscapes = new Uint8Array(256).fill(numbered, 0, 32);
for (const [byte, letter] of Object.entries({
  '"': '"',
  '\\': '\\',
  '\t': 't',
  '\n': 'n',
  '\r': 'r',
  '\b': 'b',
  '\f': 'f',
}))
  jsonEscapes[byte.charCodeAt(0)] = letter.charCodeAt(0);

/** Copies a cell as JSON, and returns the position after the copy. */
function copyJson(list: CellList, cell: number, target: Buffer, at: number): number {
  const { bytes } = list;
  const start = list.starts[cell] ?? 0;
  const end = list.ends[cell] ?? 0;
  const valueKind = list.kinds[cell] ?? 0;
  if (valueKind > cellKind.escaped) {
    return valueKind === cellKind.container
      ? copyDoubled(bytes, start, end, target, at)
      : copyPlain(bytes, start, end, target, at);
  }
  let to = at;
  target[to++] = QUOTE;
  if (valueKind === cellKind.text) to = copyPlain(bytes, start, end, target, to);
  else if (valueKind === cellKind.escaped) to = copyDoubled(bytes, start, end, target, to);
  else to = copyRaw(bytes, start, end, target, to);
  target[to++] = QUOTE;
  return to;
}

function copyPlain(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
  if (end - start > SHORT_BYTES) return at + bytes.copy(target, at, start, end);
  let to = at;
  for (let from = start; from < end; from++) target[to++] = bytes[from] ?? 0;
  return to;
}

/** COPY doubles the backslashes of JSON. */
function copyDoubled(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let to = at;
  for (let from = start; from < end; from++) {
    const byte = bytes[from] ?? 0;
    if (byte === BACKSLASH) target[to++] = BACKSLASH;
    target[to++] = byte;
  }
  return to;
}

/** Escapes a string first for JSON and then for COPY. */
function copyRaw(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let to = at;
  for (let from = start; from < end; from++) {
    const byte = bytes[from] ?? 0;
    const letter = jsonEscapes[byte] ?? 0;
    if (letter === 0) target[to++] = byte;
    else to = escapeByte(byte, letter, target, to);
  }
  return to;
}

function escapeByte(byte: number, letter: number, target: Buffer, at: number): number {
  let to = at;
  target[to++] = BACKSLASH;
  target[to++] = BACKSLASH;
  if (letter === numbered) {
    target[to++] = LETTER_U;
    target[to++] = ZERO;
    target[to++] = ZERO;
    return to + target.write(byte.toString(16).padStart(2, '0'), to, 'latin1');
  }
  if (letter === BACKSLASH) target[to++] = BACKSLASH;
  target[to++] = letter;
  return to;
}
