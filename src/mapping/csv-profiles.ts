import { idColumn } from '../domain/entity.ts';
import { SAMPLED_ROWS } from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';
import { type ColumnPlan, inJsonbOrder } from './column-plan.ts';
import { type CsvCells, MAX_ESCAPED_BYTES } from './csv-cells.ts';
import { type JsonContent, readJsonObject } from './json-object.ts';
import { escapeCopyJson, toByteString } from './json-text.ts';
import { ColumnTypes } from './property-types.ts';
import { repeatedHeader } from './reasons.ts';
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

/** Writes the records of a file of profiles as rows, from the bytes of their cells, with no string made but for a cell of JSON. */
export class CsvProfiles {
  readonly #plan: ColumnPlan;
  readonly #rows: Rows;
  readonly #out: RowBuffer;
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

  constructor(columns: readonly string[], plan: ColumnPlan, cells: CsvCells, rows: Rows) {
    this.#plan = plan;
    this.#rows = rows;
    this.#out = rows[plan.entity];
    this.#prefixes = plan.names.map((name, index) =>
      Buffer.from(plan.roles[index] === 'property' ? escapeCopyJson(`${JSON.stringify(name)}:"`) : ''),
    );
    this.#prefixBytes = this.#prefixes.reduce((sum, prefix) => sum + prefix.length + 2, 0);
    const properties = [...plan.roles.keys()].filter((column) => plan.roles[column] === 'property');
    this.#properties = Int32Array.from(inJsonbOrder(properties, plan.names));
    this.#companyIndex = plan.roles.indexOf('company');
    this.#metadataIndex = plan.roles.indexOf('metadata');
    this.#cells = cells;
    this.#repeatedHeader = new RepeatedHeader(columns, plan.idIndex);
    this.#types = new ColumnTypes(plan.names, properties);
  }

  reset(): void {
    this.#types.reset();
  }

  /** All records of a chunk were written. */
  finish(): void {
    const { records, unchanged, types } = this.#rows;
    if (this.#out.rows > 0 || unchanged.count > 0)
      this.#types.reportTo(types[this.#plan.entity], records.count > SAMPLED_ROWS);
  }

  /** Tells whether the types of the record would not be known if it was passed over. */
  mustRead(record: number): boolean {
    return record < SAMPLED_ROWS && this.#metadataIndex !== -1;
  }

  /** Tells whether the types of the record are looked at. */
  samples(record: number): boolean {
    return record < SAMPLED_ROWS;
  }

  /** Notes the types of the record whose cells were found. */
  sample(record: number): void {
    if (this.samples(record)) this.#types.count(this.#cells);
  }

  /** Returns the reason if the record is none of a profile. */
  admit(_record: number): Reason | null {
    return this.#repeatedHeader.isIn(this.#cells) ? repeatedHeader : null;
  }

  /** Writes the record of `length` bytes whose cells were found; returns null if it became a row. */
  write(record: number, length: number): Reason | null {
    const cells = this.#cells;
    const metadata = this.#readMetadata();
    if ('code' in metadata) return metadata;
    const idProblem = this.#idProblem();
    if (idProblem !== null) return idProblem;
    const out = this.#out;
    const grownBytes = (cells.hasSpecial ? MAX_ESCAPED_BYTES : 1) * length;
    out.reserve(grownBytes + metadata.text.length + this.#prefixBytes + rowOverhead);
    const rowStart = out.at;
    const keyEnd = cells.copyText(this.#plan.idIndex, out.bytes, rowStart);
    const propertyEnd = this.#copyProperties(keyEnd, metadata.text);
    const companyEnd = this.#copyCompany(propertyEnd);
    out.at = companyEnd;
    out.endRow(rowStart, keyEnd, propertyEnd, companyEnd, record, metadata.flags);
    this.sample(record);
    return null;
  }

  #idProblem(): Reason | null {
    const { idIndex, entity } = this.#plan;
    const problem = idLengthProblem(this.#cells.bytesOf(idIndex), idColumn[entity]);
    if (problem !== null || !this.#hasCompany()) return problem;
    return idLengthProblem(this.#cells.bytesOf(this.#companyIndex), 'company_id');
  }

  #readMetadata(): JsonContent | Reason {
    const column = this.#metadataIndex;
    if (column === -1 || this.#cells.isEmpty(column)) return noMetadata;
    const cell = this.#cells.byteString(column);
    const content = readJsonObject(cell, 'metadata', this.#rows.types[this.#plan.entity]);
    return 'code' in content ? content : { ...content, text: escapeCopyJson(content.text) };
  }

  /** TAB, brace, and the properties behind the key, metadata last since it wins; returns where they end. */
  #copyProperties(keyEnd: number, metadata: string): number {
    const target = this.#out.bytes;
    let to = keyEnd;
    target[to++] = TAB;
    target[to++] = OPEN;
    const first = to;
    for (let i = 0; i < this.#properties.length; i++) {
      const column = this.#properties[i] ?? 0;
      if (this.#cells.isEmpty(column)) continue;
      if (to !== first) target[to++] = COMMA;
      const prefix = this.#prefixes[column] ?? noBytes;
      for (let at = 0; at < prefix.length; at++) target[to++] = prefix[at] ?? 0;
      to = this.#cells.copyJson(column, target, to);
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
  #copyCompany(propertyEnd: number): number {
    const target = this.#out.bytes;
    let to = propertyEnd;
    target[to++] = CLOSE;
    target[to++] = TAB;
    if (this.#hasCompany()) return this.#cells.copyText(this.#companyIndex, target, to);
    target[to++] = BACKSLASH;
    target[to++] = CAPITAL_N;
    return to;
  }
}

const noBytes = new Uint8Array();

/** The UTF-8 mark as a byte string, which a file appended to another keeps. */
const byteOrderMark = '\xef\xbb\xbf';

/** The header of a CSV, to be known again among its records: files that were put into one bring theirs along. */
class RepeatedHeader {
  /** The names as byte strings. */
  readonly #names: readonly string[];
  readonly #idIndex: number;
  readonly #idName: Buffer;

  constructor(columns: readonly string[], idIndex: number) {
    this.#names = columns.map(toByteString);
    this.#idIndex = idIndex;
    this.#idName = Buffer.from(this.#names[idIndex] ?? '', 'latin1');
  }

  /**
   * Returns true if the record found by `cells` repeats the header. An id other than its column's name costs a comparison or
   * two.
   */
  isIn(cells: CsvCells): boolean {
    const { bytes } = cells;
    const name = this.#idName;
    const from = cells.starts[this.#idIndex] ?? 0;
    const start = bytes[from] === 0xef && this.#idIndex === 0 ? from + byteOrderMark.length : from;
    if ((cells.ends[this.#idIndex] ?? 0) - start !== name.length) return false;
    for (let at = 0; at < name.length; at++) if (bytes[start + at] !== name[at]) return false;
    const written = (column: number): string => {
      const cell = cells.byteString(column);
      return column === 0 && cell.startsWith(byteOrderMark) ? cell.slice(byteOrderMark.length) : cell;
    };
    // Most names suffice, since names that we gave to columns are not in the file.
    const same = this.#names.filter((name, column) => written(column).trim() === name).length;
    return 2 * same > this.#names.length;
  }
}
