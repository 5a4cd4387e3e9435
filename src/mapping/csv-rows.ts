import { isUtf8 } from 'node:buffer';
import { parse } from 'csv-parse/sync';
import type { ChunkRange } from '../domain/chunk.ts';
import { idColumn } from '../domain/entity.ts';
import { MAX_VALUE_BYTES } from '../domain/limits.ts';
import type { Reason, Reject, RejectCode } from '../domain/reject.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { createCsvScanner } from '../formats/csv-scanner.ts';
import { escapeCopy, escapeCopyJson, toByteString } from './byte-string.ts';
import type { ColumnPlan } from './column-plan.ts';
import { type JsonContent, readJsonObject } from './json-object.ts';
import { idLengthProblem } from './profile-id.ts';
import { REMOVES, type RowBuffer } from './row-buffer.ts';
import type { Rows } from './rows.ts';

const TAB = 9;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const COMMA = 0x2c;
const QUOTE = 0x22;
const CAPITAL_N = 0x4e;
/** TABs, braces, \N and the like around what a row holds. */
const rowOverhead = 64;

const problemTexts: Readonly<Record<string, string>> = {
  invalid_quote:
    'a quote stands where none may: a cell that holds quotes is quoted as a whole and doubles them',
  unclosed_quote: 'a quoted cell that begins here is never closed',
  record_too_large: 'the record is longer than a record may be',
};

/**
 * Turns chunks of one CSV into rows and rejects. Records without a quote, nearly all in most files, are walked
 * byte by byte and written as they are read; csv-parse reads those with one.
 */
export class CsvRows {
  readonly #header: CsvHeader;
  readonly #plan: ColumnPlan;
  readonly #rows: Rows;
  readonly #out: RowBuffer;
  readonly #delimiter: number;
  /** `"name":"` per column; null for columns that are not properties. */
  readonly #prefixes: readonly (Buffer | null)[];
  readonly #prefixBytes: number;

  constructor(header: CsvHeader, plan: ColumnPlan, rows: Rows) {
    this.#header = header;
    this.#plan = plan;
    this.#rows = rows;
    this.#out = rows[plan.entity];
    this.#delimiter = header.delimiter.charCodeAt(0);
    this.#prefixes = plan.names.map((name, index) =>
      plan.roles[index] === 'property' ? Buffer.from(escapeCopyJson(`${JSON.stringify(name)}:"`)) : null,
    );
    this.#prefixBytes = this.#prefixes.reduce((sum, prefix) => sum + (prefix?.length ?? 0) + 2, 0);
  }

  /** Reads the whole chunk; rows and rejects are in the `Rows` this was made with. */
  read(chunk: ChunkRange, bytes: Buffer): void {
    const quoted = this.#index(bytes);
    const parsed = this.#parseQuoted(bytes, quoted.records);
    const wholeIsUtf8 = isUtf8(bytes);
    const index = this.#rows.records;
    let nextQuoted = 0;
    for (let record = 0; record < index.count; record++) {
      const start = index.starts[record] ?? 0;
      const end = index.ends[record] ?? 0;
      let reason: Reason | null = quoted.problems.get(record) ?? null;
      let cells: readonly string[] | null = null;
      if (quoted.records[nextQuoted] === record) cells = parsed[nextQuoted++] ?? null;
      if (reason === null && !wholeIsUtf8 && !isUtf8(bytes.subarray(start, end))) reason = notUtf8;
      if (reason === null) {
        reason = cells === null ? this.#readPlain(bytes, start, end, record) : this.#readCells(cells, record);
      }
      if (reason !== null) this.#rows.rejects.push(this.#locate(index.reject(record, reason, chunk, bytes)));
    }
  }

  /** First pass: where the records are, and which of them hold a quote or are malformed. */
  #index(bytes: Buffer): { records: number[]; problems: Map<number, Reason> } {
    const scanner = createCsvScanner(this.#delimiter);
    const records: number[] = [];
    const problems = new Map<number, Reason>();
    let line = 0;
    for (let start = 0; start < bytes.length; ) {
      const end = scanner.next(bytes, start, bytes.length, true);
      if (!scanner.blank) {
        const record = this.#rows.records.add(start, scanner.contentEnd, line);
        const problem = scanner.problem;
        if (problem !== null) problems.set(record, malformed(problem));
        else if (scanner.quoted) records.push(record);
      }
      line += scanner.lines;
      start = end;
    }
    return { records, problems };
  }

  #parseQuoted(bytes: Buffer, records: readonly number[]): string[][] {
    if (records.length === 0) return [];
    const index = this.#rows.records;
    const parts: Buffer[] = [];
    for (const record of records)
      parts.push(bytes.subarray(index.starts[record], index.ends[record]), newline);
    return parse(Buffer.concat(parts), {
      delimiter: this.#header.delimiter,
      encoding: 'latin1',
      record_delimiter: '\n',
      relax_column_count: true,
    }) as string[][];
  }

  /** A record without quotes: one pass from the source bytes to the row's bytes. Null if it became a row. */
  #readPlain(bytes: Buffer, start: number, end: number, record: number): Reason | null {
    if (end - start > MAX_VALUE_BYTES) return this.#readSplit(bytes, start, end, record);
    const out = this.#out;
    out.reserve(end - start + this.#prefixBytes + rowOverhead + 2 * (end - start));
    const target = out.bytes;
    const delimiter = this.#delimiter;
    const rowStart = out.at;
    let at = rowStart;

    let from = start;
    for (let skip = this.#plan.idIndex; skip > 0; skip--) {
      while (from < end && bytes[from] !== delimiter) from++;
      from++;
    }
    for (; from < end; from++) {
      const byte = bytes[from] ?? 0;
      if (byte === delimiter) break;
      if (byte < 32 || byte === BACKSLASH) return this.#readSplit(bytes, start, end, record);
      target[at++] = byte;
    }
    const keyEnd = at;
    target[at++] = TAB;
    target[at++] = OPEN;

    const { roles } = this.#plan;
    const columns = roles.length;
    let companyStart = 0;
    let companyEnd = 0;
    let column = 0;
    let some = false;
    for (let cell = start; ; column++) {
      const prefix = column < columns ? this.#prefixes[column] : null;
      let next = cell;
      if (prefix != null && next < end && bytes[next] !== delimiter) {
        if (some) target[at++] = COMMA;
        some = true;
        for (let i = 0; i < prefix.length; i++) target[at++] = prefix[i] ?? 0;
        for (; next < end; next++) {
          const byte = bytes[next] ?? 0;
          if (byte === delimiter) break;
          if (byte < 32 || byte === BACKSLASH) return this.#readSplit(bytes, start, end, record);
          target[at++] = byte;
        }
        target[at++] = QUOTE;
      } else {
        while (next < end && bytes[next] !== delimiter) next++;
        if (next > cell && column < columns) {
          const role = roles[column];
          if (role === 'metadata') return this.#readSplit(bytes, start, end, record);
          if (role === 'company') {
            companyStart = cell;
            companyEnd = next;
          }
        }
      }
      if (next >= end) break;
      cell = next + 1;
    }
    if (column + 1 !== columns) return wrongCount(columns, this.#countCells(bytes, start, end));
    const propertyEnd = at;
    target[at++] = CLOSE;
    target[at++] = TAB;
    if (companyStart === companyEnd) {
      target[at++] = BACKSLASH;
      target[at++] = CAPITAL_N;
    } else {
      for (let i = companyStart; i < companyEnd; i++) {
        const byte = bytes[i] ?? 0;
        if (byte < 32 || byte === BACKSLASH) return this.#readSplit(bytes, start, end, record);
        target[at++] = byte;
      }
    }
    const idProblem =
      idLengthProblem(keyEnd - rowStart, idColumn[this.#plan.entity]) ??
      (companyStart === companyEnd ? null : idLengthProblem(companyEnd - companyStart, 'company_id'));
    if (idProblem !== null) return idProblem;
    out.at = at;
    out.endRow(rowStart, keyEnd, propertyEnd, at, record, 0);
    return null;
  }

  #countCells(bytes: Buffer, start: number, end: number): number {
    let cells = 1;
    for (let at = start; at < end; at++) if (bytes[at] === this.#delimiter) cells++;
    return cells;
  }

  #readSplit(bytes: Buffer, start: number, end: number, record: number): Reason | null {
    return this.#readCells(bytes.toString('latin1', start, end).split(this.#header.delimiter), record);
  }

  /** A record given as cells (byte strings). Null if it became a row. */
  #readCells(cells: readonly string[], record: number): Reason | null {
    const { roles, names, idIndex, entity } = this.#plan;
    if (cells.length !== roles.length) return wrongCount(roles.length, cells.length);
    const reason = this.#cellProblem(cells);
    if (reason !== null) return reason;
    const properties: string[] = [];
    let company: string | null = null;
    let removes = false;
    for (let column = 0; column < cells.length; column++) {
      const cell = cells[column] ?? '';
      if (cell === '') continue;
      const role = roles[column];
      if (role === 'property') {
        properties.push(`${toByteString(JSON.stringify(names[column]))}:${JSON.stringify(cell)}`);
      } else if (role === 'company') {
        company = cell;
      } else if (role === 'metadata') {
        const content: JsonContent | Reason = readJsonObject(cell, 'metadata');
        if ('code' in content) return content;
        if (content.text !== '') properties.push(content.text);
        removes ||= content.removes;
      }
    }
    const id = cells[idIndex] ?? '';
    const idProblem =
      idLengthProblem(id.length, idColumn[entity]) ??
      (company === null ? null : idLengthProblem(company.length, 'company_id'));
    if (idProblem !== null) return idProblem;
    this.#rows.add(
      entity,
      escapeCopy(id),
      escapeCopyJson(properties.join(',')),
      company === null ? null : escapeCopy(company),
      removes ? REMOVES : 0,
      record,
    );
    return null;
  }

  #cellProblem(cells: readonly string[]): Reason | null {
    for (const [column, cell] of cells.entries()) {
      if (cell.includes('\0')) {
        return {
          code: 'nul_character',
          message: 'the cell holds U+0000',
          column: this.#header.columns[column] ?? null,
        };
      }
      if (cell.length > MAX_VALUE_BYTES && this.#plan.roles[column] === 'property') {
        return {
          code: 'value_too_large',
          message: `the cell has ${cell.length} bytes; at most ${MAX_VALUE_BYTES} are allowed`,
          column: this.#header.columns[column] ?? null,
        };
      }
    }
    return null;
  }

  /** Names an id column as the file does, where `map` renamed it. */
  #locate(reject: Reject): Reject {
    const index = reject.column === null ? -1 : this.#plan.names.indexOf(reject.column);
    const name = this.#header.columns[index];
    return name === undefined || name === reject.column ? reject : { ...reject, column: name };
  }
}

const newline = Buffer.from('\n');
const notUtf8: Reason = { code: 'invalid_utf8', message: 'the record is not valid UTF-8', column: null };

function malformed(problem: RejectCode): Reason {
  return { code: problem, message: problemTexts[problem] ?? problem, column: null };
}

function wrongCount(expected: number, found: number): Reason {
  return {
    code: 'wrong_field_count',
    message: `the header has ${expected} columns, this record ${found}`,
    column: null,
  };
}
