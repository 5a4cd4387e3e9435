import { isUtf8 } from 'node:buffer';
import { idColumn } from '../domain/entity.ts';
import { MAX_VALUE_BYTES, RECORDS_AT_A_TIME, SAMPLED_ROWS } from '../domain/limits.ts';
import type { ChunkRange } from '../domain/load.ts';
import type { Reason } from '../domain/reject.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { type ColumnPlan, inJsonbOrder, locateReject } from './column-plan.ts';
import { CsvCells, MAX_ESCAPED_BYTES } from './csv-cells.ts';
import { CsvChunk, findCellProblem, findFitting, RepeatedHeader, undoDefused } from './csv-chunk.ts';
import { type JsonContent, readJsonObject } from './json-object.ts';
import { escapeCopyJson } from './json-text.ts';
import { ColumnTypes } from './property-types.ts';
import { repeatedHeader, Utf8Reasons } from './reasons.ts';
import type { RowBuffer } from './row-buffer.ts';
import { idLengthProblem, type Rows } from './rows.ts';

const TAB = 9;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const COMMA = 0x2c;
const QUOTE = 0x22;
const CAPITAL_N = 0x4e;
/** TABs, braces, \N and the like around what a row holds. */
const rowOverhead = 64;
const noMetadata: JsonContent = { text: '', flags: 0 };

/**
 * Turns chunks of one CSV into rows and rejects. Records are walked byte by byte, and written as they are read, with no string
 * made but for a cell of JSON.
 */
export class CsvRows {
  readonly #header: CsvHeader;
  readonly #plan: ColumnPlan;
  readonly #rows: Rows;
  readonly #out: RowBuffer;
  readonly #chunk: CsvChunk;
  /** `"name":"` per column, as UTF-8 escaped for COPY; empty for columns that are not properties. */
  readonly #prefixes: readonly Uint8Array[];
  readonly #prefixBytes: number;
  /** Columns that are properties, in the order in which jsonb keeps them: it then has nothing to sort. */
  readonly #properties: Int32Array;
  readonly #companyIndex: number;
  readonly #metadataIndex: number;
  readonly #cells: CsvCells;
  readonly #repeatedHeader: RepeatedHeader;
  readonly #types: ColumnTypes;
  /** The buffer that `#chunk` has indexed. */
  #indexed: Buffer | null = null;
  /** True if the chunk holds U+0000. */
  #hasNul = false;

  constructor(header: CsvHeader, plan: ColumnPlan, rows: Rows) {
    this.#header = header;
    this.#plan = plan;
    this.#rows = rows;
    this.#out = rows[plan.entity];
    this.#chunk = new CsvChunk(header, rows.records);
    this.#prefixes = plan.names.map((name, index) =>
      Buffer.from(plan.roles[index] === 'property' ? escapeCopyJson(`${JSON.stringify(name)}:"`) : ''),
    );
    this.#prefixBytes = this.#prefixes.reduce((sum, prefix) => sum + prefix.length + 2, 0);
    const properties = [...plan.roles.keys()].filter((column) => plan.roles[column] === 'property');
    this.#properties = Int32Array.from(inJsonbOrder(properties, plan.names));
    this.#companyIndex = plan.roles.indexOf('company');
    this.#metadataIndex = plan.roles.indexOf('metadata');
    this.#cells = new CsvCells(header.delimiter.charCodeAt(0), plan.roles.length);
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
      // The types of its metadata are not known otherwise.
      if (record < SAMPLED_ROWS && this.#metadataIndex !== -1) continue;
      if (this.#cells.findOne(text.bytes, start, end, this.#plan.idIndex)) {
        unchanged.offer(this.#plan.entity, record, this.#cells.oneStart, this.#cells.oneEnd);
      }
    }
  }

  /** Notes the types of a record that is passed over, as if it were read. */
  #sample(bytes: Buffer, start: number, end: number): void {
    findFitting(this.#cells, this.#header, bytes, start, end);
    undoDefused(this.#cells, this.#header, bytes);
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
    this.#hasNul = text.bytes.includes(0);
    const utf8Reasons = new Utf8Reasons();
    const index = this.#rows.records;
    for (let record = 0; record < index.count; record++) {
      if (record % RECORDS_AT_A_TIME === RECORDS_AT_A_TIME - 1) yield;
      const start = starts[record] ?? 0;
      const end = ends[record] ?? 0;
      if (unchanged.has(record)) {
        if (record < SAMPLED_ROWS) this.#sample(text.bytes, start, end);
        continue;
      }
      let reason: Reason | null = problems.size === 0 ? null : (problems.get(record) ?? null);
      if (reason === null && !text.isUtf8 && !isUtf8(text.bytes.subarray(start, end))) {
        reason = utf8Reasons.ofCsv(text.bytes, start, end, this.#cells, this.#plan.names);
      }
      reason ??= this.#readRecord(text.bytes, start, end, record);
      if (reason !== null) {
        const reject = index.reject(record, reason, chunk, bytes);
        this.#rows.rejects.push(locateReject(reject, this.#plan.names, this.#header.columns));
      }
    }
    if (this.#out.rows > 0 || unchanged.count > 0)
      this.#types.reportTo(this.#rows.types[this.#plan.entity], index.count > SAMPLED_ROWS);
  }

  /** Writes a record from its bytes to the row's. Returns null if it became a row. */
  #readRecord(bytes: Buffer, start: number, end: number, record: number): Reason | null {
    const cells = this.#cells;
    const unfit = findFitting(cells, this.#header, bytes, start, end);
    if (unfit !== null) return unfit;
    if (this.#repeatedHeader.isIn(bytes, cells)) return repeatedHeader;
    const problem = undoDefused(cells, this.#header, bytes) ?? this.#cellProblem(bytes, start, end);
    if (problem !== null) return problem;
    const metadata = this.#readMetadata(bytes);
    if ('code' in metadata) return metadata;
    const idProblem = this.#idProblem(bytes);
    if (idProblem !== null) return idProblem;
    const out = this.#out;
    // Without escapes, a doubled quote, two bytes, becomes an escaped one, three.
    const grownBytes = (cells.hasEscapes ? MAX_ESCAPED_BYTES : 2) * (end - start);
    out.reserve(grownBytes + metadata.text.length + this.#prefixBytes + rowOverhead);
    const rowStart = out.at;
    const keyEnd = this.#copyText(bytes, this.#plan.idIndex, rowStart);
    const propertyEnd = this.#copyProperties(bytes, keyEnd, metadata.text);
    const companyEnd = this.#copyCompany(bytes, propertyEnd);
    out.at = companyEnd;
    out.endRow(rowStart, keyEnd, propertyEnd, companyEnd, record, metadata.flags);
    if (record < SAMPLED_ROWS) this.#types.recordWalked(bytes, start, end, cells);
    return null;
  }

  #cellProblem(bytes: Buffer, start: number, end: number): Reason | null {
    if (!this.#hasNul && end - start <= MAX_VALUE_BYTES) return null;
    const { roles } = this.#plan;
    return findCellProblem(this.#cells, this.#header, bytes, (column) => roles[column] === 'property');
  }

  #idProblem(bytes: Buffer): Reason | null {
    const { idIndex, entity } = this.#plan;
    const problem = idLengthProblem(this.#cells.bytesOf(bytes, idIndex), idColumn[entity]);
    if (problem !== null || !this.#hasCompany()) return problem;
    return idLengthProblem(this.#cells.bytesOf(bytes, this.#companyIndex), 'company_id');
  }

  #readMetadata(bytes: Buffer): JsonContent | Reason {
    const column = this.#metadataIndex;
    if (column === -1 || this.#cells.isEmpty(column)) return noMetadata;
    const cell = this.#cells.byteString(bytes, column);
    const content = readJsonObject(cell, 'metadata', this.#rows.types[this.#plan.entity]);
    return 'code' in content ? content : { ...content, text: escapeCopyJson(content.text) };
  }

  #copyText(bytes: Buffer, column: number, to: number): number {
    const target = this.#out.bytes;
    if (this.#cells.hasEscapes) return this.#cells.copyText(bytes, column, target, to);
    return this.#cells.copy(bytes, column, target, to);
  }

  /** TAB, brace, and the properties behind the key, metadata last since it wins; returns where they end. */
  #copyProperties(bytes: Buffer, keyEnd: number, metadata: string): number {
    const target = this.#out.bytes;
    const { starts, ends, doubled, hasEscapes } = this.#cells;
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
      if (hasEscapes) to = this.#cells.copyJson(bytes, column, target, to);
      else if (doubled[column] === 1) to = this.#cells.copyEscaped(bytes, column, target, to);
      else for (; from < end; from++) target[to++] = bytes[from] ?? 0;
      target[to++] = QUOTE;
    }
    if (metadata === '') return to;
    if (to !== first) target[to++] = COMMA;
    return to + target.write(metadata, to, 'latin1');
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
    if (this.#hasCompany()) return this.#copyText(bytes, this.#companyIndex, to);
    target[to++] = BACKSLASH;
    target[to++] = CAPITAL_N;
    return to;
  }
}

const noBytes = new Uint8Array();
