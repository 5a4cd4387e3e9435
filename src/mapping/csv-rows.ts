import { isUtf8 } from 'node:buffer';
import { parse } from 'csv-parse/sync';
import { idColumn } from '../domain/entity.ts';
import { isDefused } from '../domain/formula.ts';
import { MAX_VALUE_BYTES, RECORDS_AT_A_TIME, SAMPLED_ROWS } from '../domain/limits.ts';
import type { ChunkRange } from '../domain/load.ts';
import type { Reason } from '../domain/reject.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { type ColumnPlan, inJsonbOrder, locateReject } from './column-plan.ts';
import { CsvCells, fitCells } from './csv-cells.ts';
import { CsvChunk, RepeatedHeader } from './csv-chunk.ts';
import { type JsonContent, readJsonObject } from './json-object.ts';
import { escapeCopy, escapeCopyJson, toByteString } from './json-text.ts';
import { ColumnTypes } from './property-types.ts';
import { repeatedHeader, shifted, Utf8Reasons, unclearApostrophe, wrongCount } from './reasons.ts';
import type { RowBuffer } from './row-buffer.ts';
import { idLengthProblem, type Rows } from './rows.ts';

const TAB = 9;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const COMMA = 0x2c;
const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const CAPITAL_N = 0x4e;
/** TABs, braces, \N and the like around what a row holds. */
const rowOverhead = 64;

/**
 * Turns chunks of one CSV into rows and rejects. Nearly all records are walked byte by byte, quotes included, and
 * written as they are read, with no string made. csv-parse reads the quoted records that hold more than quotes:
 * line breaks, other control characters, backslashes, a cell of JSON, or cells too large.
 */
export class CsvRows {
  readonly #header: CsvHeader;
  readonly #plan: ColumnPlan;
  readonly #rows: Rows;
  readonly #out: RowBuffer;
  readonly #delimiter: number;
  readonly #pads: boolean;
  readonly #chunk: CsvChunk;
  /** `"name":"` per column, as UTF-8 escaped for COPY; empty for columns that are not properties. */
  readonly #prefixes: readonly Uint8Array[];
  readonly #prefixBytes: number;
  /** Columns that are properties, in the order in which jsonb keeps them: it then has nothing to sort. */
  readonly #properties: Int32Array;
  readonly #companyIndex: number;
  readonly #hasMetadata: boolean;
  readonly #cells: CsvCells;
  readonly #repeatedHeader: RepeatedHeader;
  readonly #types: ColumnTypes;
  /** The buffer that `#chunk` has indexed. */
  #indexed: Buffer | null = null;

  constructor(header: CsvHeader, plan: ColumnPlan, rows: Rows) {
    this.#header = header;
    this.#plan = plan;
    this.#rows = rows;
    this.#out = rows[plan.entity];
    this.#delimiter = header.delimiter.charCodeAt(0);
    this.#pads = header.ragged === 'pad';
    this.#chunk = new CsvChunk(header, rows.records);
    this.#prefixes = plan.names.map((name, index) =>
      Buffer.from(plan.roles[index] === 'property' ? escapeCopyJson(`${JSON.stringify(name)}:"`) : ''),
    );
    this.#prefixBytes = this.#prefixes.reduce((sum, prefix) => sum + prefix.length + 2, 0);
    const properties = [...plan.roles.keys()].filter((column) => plan.roles[column] === 'property');
    this.#properties = Int32Array.from(inJsonbOrder(properties, plan.names));
    this.#companyIndex = plan.roles.indexOf('company');
    this.#hasMetadata = plan.roles.includes('metadata');
    this.#cells = new CsvCells(this.#delimiter, plan.roles.length);
    this.#repeatedHeader = new RepeatedHeader(header.columns, plan.idIndex);
    this.#types = new ColumnTypes(plan.names, properties);
  }

  /** Digests the records of the chunk that is read next, and offers those whose key is in plain sight. */
  offerUnchanged(bytes: Buffer): void {
    const text = this.#chunk;
    text.index(bytes);
    this.#indexed = bytes;
    const { digests, unchanged, records } = this.#rows;
    unchanged.reset(text.bytes);
    for (let record = 0; record < records.count; record++) {
      digests.add(records.starts[record] ?? 0, records.ends[record] ?? 0);
      if (text.problems.has(record)) continue;
      const start = text.starts[record] ?? 0;
      const end = text.ends[record] ?? 0;
      if (!text.isUtf8 && !isUtf8(text.bytes.subarray(start, end))) continue;
      if (record < SAMPLED_ROWS && !this.#isWalkable(text.bytes, start, end)) continue;
      if (this.#cells.findOne(text.bytes, start, end, this.#plan.idIndex)) {
        unchanged.offer(this.#plan.entity, record, this.#cells.oneStart, this.#cells.oneEnd);
      }
    }
  }

  #isWalkable(bytes: Buffer, start: number, end: number): boolean {
    if (this.#hasMetadata || end - start > MAX_VALUE_BYTES) return false;
    return !this.#cells.needsEscape(bytes, start, end);
  }

  /** Notes the types of a record that is passed over, and `#isWalkable`, as if it were read. */
  #sample(bytes: Buffer, start: number, end: number): void {
    const found = this.#cells.find(bytes, start, end);
    if (found !== this.#plan.roles.length) this.#cells.fits(bytes, end, found, this.#pads);
    if (this.#header.defused === 'undone') this.#cells.undoDefused(bytes);
    this.#types.recordWalked(bytes, start, end, this.#cells);
  }

  /** Reads the chunk, RECORDS_AT_A_TIME by each step; rows and rejects are in the `Rows` this was made with. */
  *read(chunk: ChunkRange, bytes: Buffer): Generator<void, void> {
    this.#types.reset();
    const text = this.#chunk;
    const { unchanged } = this.#rows;
    if (this.#indexed !== bytes) text.index(bytes);
    this.#indexed = null;
    const { starts, ends, problems } = text;
    const complex = text.quoted.filter(
      (record) =>
        !unchanged.has(record) && this.#isComplex(text.bytes, starts[record] ?? 0, ends[record] ?? 0),
    );
    const parsed = this.#parseComplex(complex);
    const utf8Reasons = new Utf8Reasons();
    const index = this.#rows.records;
    let nextComplex = 0;
    for (let record = 0; record < index.count; record++) {
      if (record % RECORDS_AT_A_TIME === RECORDS_AT_A_TIME - 1) yield;
      const start = starts[record] ?? 0;
      const end = ends[record] ?? 0;
      if (unchanged.has(record)) {
        if (record < SAMPLED_ROWS) this.#sample(text.bytes, start, end);
        continue;
      }
      let reason: Reason | null = problems.size === 0 ? null : (problems.get(record) ?? null);
      let cells: readonly string[] | null = null;
      if (complex[nextComplex] === record) cells = parsed[nextComplex++] ?? null;
      if (reason === null && !text.isUtf8 && !isUtf8(text.bytes.subarray(start, end))) {
        reason = utf8Reasons.ofCsv(text.bytes, start, end, this.#cells, this.#plan.names);
      }
      if (reason === null) {
        reason =
          cells === null ? this.#readBytes(text.bytes, start, end, record) : this.#readCells(cells, record);
      }
      if (reason !== null) {
        const reject = index.reject(record, reason, chunk, bytes);
        this.#rows.rejects.push(locateReject(reject, this.#plan.names, this.#header.columns));
      }
    }
    if (this.#out.rows > 0 || unchanged.count > 0)
      this.#types.reportTo(this.#rows.types[this.#plan.entity], index.count > SAMPLED_ROWS);
  }

  #isComplex(bytes: Buffer, start: number, end: number): boolean {
    // In a file with TABs between cells, a quoted TAB would pass for one of them.
    if (this.#hasMetadata || this.#delimiter === TAB || end - start > MAX_VALUE_BYTES) return true;
    return this.#cells.needsEscape(bytes, start, end);
  }

  /** All of a chunk's complex records in one call: csv-parse costs as much to set up as to read many. */
  #parseComplex(records: readonly number[]): string[][] {
    if (records.length === 0) return [];
    const { bytes, starts, ends } = this.#chunk;
    const parts: Buffer[] = [];
    for (const record of records) parts.push(bytes.subarray(starts[record], ends[record]), newline);
    return parse(Buffer.concat(parts), {
      delimiter: this.#header.delimiter,
      encoding: 'latin1',
      record_delimiter: '\n',
      relax_column_count: true,
    }) as string[][];
  }

  /** A record without anything to escape but quotes: from its bytes to the row's. Null if it became a row. */
  #readBytes(bytes: Buffer, start: number, end: number, record: number): Reason | null {
    const columns = this.#plan.roles.length;
    if (this.#hasMetadata || end - start > MAX_VALUE_BYTES) return this.#readSplit(bytes, start, end, record);
    const found = this.#cells.find(bytes, start, end);
    if (found === -1) return this.#readSplit(bytes, start, end, record);
    if (found !== columns) {
      if (!this.#cells.fits(bytes, end, found, this.#pads)) return wrongCount(columns, found);
      if (this.#isShifted(found, !this.#cells.isEmpty(columns - 1))) return shifted(columns, found);
    }
    if (this.#repeatedHeader.isIn(bytes, this.#cells)) return repeatedHeader;
    if (this.#header.defused === 'undone') this.#cells.undoDefused(bytes);
    else if (this.#header.defused === 'doubtful') {
      const doubtful = this.#cells.findDefused(bytes);
      if (doubtful !== -1) return unclearApostrophe(this.#header.columns[doubtful] ?? null);
    }
    const out = this.#out;
    // A doubled quote, two bytes, becomes an escaped one, three.
    out.reserve(2 * (end - start) + this.#prefixBytes + rowOverhead);
    const rowStart = out.at;
    const keyEnd = this.#cells.copy(bytes, this.#plan.idIndex, out.bytes, rowStart);
    const propertyEnd = this.#copyProperties(bytes, keyEnd);
    const companyStart = propertyEnd + 2;
    const companyEnd = this.#copyCompany(bytes, propertyEnd);
    const companyBytes = this.#hasCompany() ? companyEnd - companyStart : 1;
    const problem =
      idLengthProblem(keyEnd - rowStart, idColumn[this.#plan.entity]) ??
      idLengthProblem(companyBytes, 'company_id');
    if (problem !== null) return problem;
    out.at = companyEnd;
    out.endRow(rowStart, keyEnd, propertyEnd, companyEnd, record, 0);
    if (record < SAMPLED_ROWS) this.#types.recordWalked(bytes, start, end, this.#cells);
    return null;
  }

  /** TAB, brace, and the properties behind the key; returns where they end. */
  #copyProperties(bytes: Buffer, keyEnd: number): number {
    const target = this.#out.bytes;
    const { starts, ends, doubled } = this.#cells;
    let to = keyEnd;
    target[to++] = TAB;
    target[to++] = OPEN;
    const first = to;
    for (let i = 0; i < this.#properties.length; i++) {
      const column = this.#properties[i] ?? 0;
      let from = starts[column] ?? 0;
      const end = ends[column] ?? 0;
      if (from === end) continue;
      if (to !== first) target[to++] = COMMA;
      const prefix = this.#prefixes[column] ?? noBytes;
      for (let at = 0; at < prefix.length; at++) target[to++] = prefix[at] ?? 0;
      if (doubled[column] === 1) to = this.#cells.copyEscaped(bytes, column, target, to);
      else for (; from < end; from++) target[to++] = bytes[from] ?? 0;
      target[to++] = QUOTE;
    }
    return to;
  }

  #hasCompany(): boolean {
    const column = this.#companyIndex;
    return column !== -1 && !this.#cells.isEmpty(column);
  }

  /** Brace, TAB and the company, or \N where there is none; returns where it ends. */
  #copyCompany(bytes: Buffer, propertyEnd: number): number {
    const target = this.#out.bytes;
    let to = propertyEnd;
    target[to++] = CLOSE;
    target[to++] = TAB;
    if (this.#hasCompany()) return this.#cells.copy(bytes, this.#companyIndex, target, to);
    target[to++] = BACKSLASH;
    target[to++] = CAPITAL_N;
    return to;
  }

  #readSplit(bytes: Buffer, start: number, end: number, record: number): Reason | null {
    return this.#readCells(bytes.toString('latin1', start, end).split(this.#header.delimiter), record);
  }

  /** Returns true if a delimiter too many is likely to have moved all cells behind it into wrong columns. */
  #isShifted(found: number, isLastFilled: boolean): boolean {
    return this.#header.lastColumn === 'empty' && isLastFilled && found > this.#plan.roles.length;
  }

  /** A record given as cells (byte strings). Null if it became a row. */
  #readCells(written: readonly string[], record: number): Reason | null {
    const { roles, names, idIndex, entity } = this.#plan;
    const fitting = written.length === roles.length ? written : fitCells(written, roles.length, this.#pads);
    if (fitting === null) return wrongCount(roles.length, written.length);
    if (this.#isShifted(written.length, fitting.at(-1) !== '')) return shifted(roles.length, written.length);
    if (this.#repeatedHeader.isOf(fitting)) return repeatedHeader;
    const cells = this.#header.defused === 'undone' ? fitting.map(undoDefusedBytes) : fitting;
    const reason = this.#cellProblem(cells);
    if (reason !== null) return reason;
    const properties: string[] = [];
    let company: string | null = null;
    let flags = 0;
    for (let column = 0; column < cells.length; column++) {
      const cell = cells[column] ?? '';
      if (cell === '') continue;
      const role = roles[column];
      if (role === 'property') {
        properties.push(`${toByteString(JSON.stringify(names[column]))}:${JSON.stringify(cell)}`);
      } else if (role === 'company') {
        company = cell;
      } else if (role === 'metadata') {
        const content: JsonContent | Reason = readJsonObject(cell, 'metadata', this.#rows.types[entity]);
        if ('code' in content) return content;
        if (content.text !== '') properties.push(content.text);
        flags |= content.flags;
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
      flags,
      record,
    );
    if (record < SAMPLED_ROWS) this.#types.countCells(cells);
    return null;
  }

  #cellProblem(cells: readonly string[]): Reason | null {
    const isDoubtful = this.#header.defused === 'doubtful';
    for (const [column, cell] of cells.entries()) {
      if (isDoubtful && undoDefusedBytes(cell) !== cell)
        return unclearApostrophe(this.#header.columns[column] ?? null);
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
}

/** Does the same for a byte string. */
function undoDefusedBytes(cell: string): string {
  if (cell.charCodeAt(0) !== APOSTROPHE) return cell;
  return isDefused(Buffer.from(cell, 'latin1').toString('utf8')) ? cell.slice(1) : cell;
}

const noBytes = new Uint8Array();
const newline = Buffer.from('\n');
