import { isUtf8 } from 'node:buffer';
import type { Reason } from '../domain/reject.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { CellTable, PlainRecords } from '../formats/csv-plain.ts';
import { createRecordScanner } from '../formats/csv-scanner.ts';
import type { RecordScanner } from '../formats/record-scanner.ts';
import { invalidEscape, malformed } from './reasons.ts';
import type { RecordIndex } from './rows.ts';

/**
 * The records of a chunk of CSV, as they can be read: in `bytes` from `starts` to `ends` as RFC 4180 has them. `records`
 * has where they came from. Those of a plain file are read where they are; those of any other dialect are written anew.
 */
export class CsvChunk {
  bytes: Buffer = Buffer.alloc(0);
  starts: Int32Array = new Int32Array(0);
  ends: Int32Array = new Int32Array(0);
  /** Records with quotes. */
  quoted: number[] = [];
  /** Why records cannot be read. */
  problems = new Map<number, Reason>();
  isUtf8 = true;

  readonly #header: CsvHeader;
  readonly #records: RecordIndex;

  constructor(header: CsvHeader, records: RecordIndex) {
    this.#header = header;
    this.#records = records;
  }

  index(source: Buffer): void {
    this.quoted = [];
    this.problems = new Map();
    const { dialect, delimiter } = this.#header;
    if (dialect === undefined) this.#indexPlain(source);
    else this.#rewrite(source, new PlainRecords(dialect, delimiter));
    this.isUtf8 = isUtf8(this.bytes);
  }

  #indexPlain(source: Buffer): void {
    const scanner = createRecordScanner(this.#header);
    let line = 0;
    for (let start = 0; start < source.length; ) {
      const end = scanner.next(source, start, source.length, true);
      if (!scanner.blank) {
        const record = this.#records.add(start, scanner.contentEnd, line);
        const { problem } = scanner;
        if (problem !== null) this.problems.set(record, malformed(problem));
        else if (scanner.quoted) this.quoted.push(record);
      }
      line += scanner.lines;
      start = end;
    }
    this.bytes = source;
    this.starts = this.#records.starts;
    this.ends = this.#records.ends;
  }

  #rewrite(source: Buffer, plain: PlainRecords): void {
    const cells = new CellTable();
    const scanner = createRecordScanner(this.#header, undefined, cells);
    const starts: number[] = [];
    const ends: number[] = [];
    let line = 0;
    for (let start = 0; start < source.length; ) {
      const end = scanner.next(source, start, source.length, true);
      if (!scanner.blank) {
        const record = this.#records.add(start, scanner.contentEnd, line);
        starts.push(plain.at);
        this.#rewriteRecord(record, scanner, source, cells, plain);
        ends.push(plain.at);
      }
      line += scanner.lines;
      start = end;
    }
    this.bytes = plain.bytes.subarray(0, plain.at);
    this.starts = Int32Array.from(starts);
    this.ends = Int32Array.from(ends);
  }

  #rewriteRecord(
    record: number,
    scanner: RecordScanner,
    source: Buffer,
    cells: CellTable,
    plain: PlainRecords,
  ): void {
    if (scanner.problem !== null) this.problems.set(record, malformed(scanner.problem));
    else if (!plain.write(source, cells)) this.problems.set(record, invalidEscape);
    else if (plain.quoted) this.quoted.push(record);
  }
}
