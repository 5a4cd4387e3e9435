import { RECORDS_AT_A_TIME } from '../domain/limits.ts';
import type { ChunkRange } from '../domain/load.ts';
import { isRejectColumn, type Reason } from '../domain/reject.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { fromByteString } from '../formats/json-text.ts';
import { CsvChunk, RepeatedHeader } from './csv-rows.ts';
import { JsonRecords, type RecordRules } from './json-records.ts';
import { repeatedHeader } from './reasons.ts';
import type { Rows } from './rows.ts';

/** Turns chunks of a CSV that another product exported into rows and rejects. A preset reads each record as the object of its cells. */
export class CsvPresetRows {
  readonly saysKinds = false;
  readonly #paths: readonly (readonly [within: string, name: string])[];
  readonly #containers: ReadonlySet<string>;
  readonly #rows: Rows;
  readonly #chunk: CsvChunk;
  readonly #records: JsonRecords;
  readonly #repeatedHeader: RepeatedHeader;

  constructor(header: CsvHeader, rules: RecordRules, rows: Rows) {
    this.#paths = header.columns.map(pathOf);
    this.#containers = new Set(this.#paths.map(([within]) => within));
    this.#rows = rows;
    this.#chunk = new CsvChunk(header, rows.records);
    this.#records = new JsonRecords(rules, rows);
    this.#repeatedHeader = new RepeatedHeader(header.columns, 0);
  }

  /** Offers none: records that a preset reads have no digests. */
  offerUnchanged(): void {}

  /** Reads the chunk, RECORDS_AT_A_TIME by each step; rows and rejects are in the `Rows` this was made with. */
  *read(chunk: ChunkRange, bytes: Buffer): Generator<void, void> {
    const { records, rejects } = this.#rows;
    this.#chunk.index(bytes);
    for (let record = 0; record < records.count; record++) {
      if (record % RECORDS_AT_A_TIME === RECORDS_AT_A_TIME - 1) yield;
      const reason = this.#rows.refusalOf(record) ?? this.#readRecord(record);
      if (reason !== null) rejects.push(records.reject(record, reason, chunk, bytes));
    }
  }

  #readRecord(record: number): Reason | null {
    const unread = this.#chunk.find(record);
    if (unread !== null) return unread;
    if (this.#repeatedHeader.isIn(this.#chunk.cells)) return repeatedHeader;
    const problem = this.#chunk.undoDefused() ?? this.#chunk.findCellProblem(record, []);
    return problem ?? this.#records.parse(this.#toJson(), record);
  }

  /** Returns the user that a record names, whatever else is wrong with it, or null. */
  userOf(record: number): string | null {
    if (this.#chunk.count(record) < this.#paths.length) return null;
    this.#chunk.undoDefused();
    return this.#records.userOf(this.#toJson());
  }

  /** Returns the record found last as JSON. */
  #toJson(): string {
    const { cells } = this.#chunk;
    const members = new Map<string, string[]>([['', []]]);
    for (const [column, [within, name]] of this.#paths.entries()) {
      if (cells.isEmpty(column) || isRejectColumn(name)) continue;
      const json = jsonOf(fromByteString(cells.byteString(column)));
      // A file may have an object and members of it in columns of their own.
      const isObject = within === '' && this.#containers.has(name) && json.trimStart().startsWith('{');
      const member = isObject ? json.trim().slice(1, -1) : `${JSON.stringify(name)}:${json}`;
      const container = isObject ? name : within;
      if (member.trim() !== '') members.set(container, [...(members.get(container) ?? []), member]);
    }
    const { '': own = [], ...objects } = Object.fromEntries(members);
    for (const [name, inner] of Object.entries(objects)) own.push(`"${name}":{${inner.join(',')}}`);
    return `{${own.join(',')}}`;
  }
}

/** A program that makes a table of JSON writes members of these as columns of their own. */
const flattened =
  /^(context|event_properties|group_properties|groups|metadata|properties|traits|user_properties)\.(.+)$/s;

/** Returns the object that a column is a member of, if any, and its name. */
function pathOf(column: string): readonly [within: string, name: string] {
  const [, within = '', name = column] = flattened.exec(column) ?? [];
  return [within, name];
}

/** Returns a cell as JSON: an object or a list as it stands, anything else as a text. */
function jsonOf(cell: string): string {
  if (/^\s*[{[]/.test(cell)) {
    try {
      JSON.parse(cell);
      return cell;
    } catch {}
  }
  return JSON.stringify(cell);
}
