import { isUtf8 } from 'node:buffer';
import type { LoadEntity } from '../domain/entity.ts';
import { RECORDS_AT_A_TIME } from '../domain/limits.ts';
import type { ChunkRange, Preset } from '../domain/load.ts';
import type { Reason } from '../domain/reject.ts';
import { createLineScanner } from '../formats/record-scanner.ts';
import { NdjsonKeys } from './ndjson-keys.ts';
import { isVerbatim, ParsedRecords } from './parsed-records.ts';
import { Utf8Reasons } from './reasons.ts';
import type { Rows } from './rows.ts';
import { WalkedRecords } from './walked-records.ts';

/**
 * Turns chunks of one NDJSON file into rows and rejects. Nearly all records are walked byte by byte and written as they are
 * read (`WalkedRecords`); what that leaves is parsed (`ParsedRecords`), and comes to the same.
 */
export class NdjsonRows {
  readonly #rows: Rows;
  readonly #parsed: ParsedRecords;
  /** Null if the text of a record does not say what is read from it. */
  readonly #walked: WalkedRecords | null;
  readonly #keys: NdjsonKeys;
  #utf8Reasons = new Utf8Reasons();

  constructor(
    entity: LoadEntity,
    map: Readonly<Record<string, string>>,
    rows: Rows,
    preset: Preset | null = null,
  ) {
    const rules = { entity, map, preset };
    this.#rows = rows;
    this.#parsed = new ParsedRecords(rules, rows);
    this.#walked = isVerbatim(rules) ? new WalkedRecords(entity, rows) : null;
    this.#keys = new NdjsonKeys(entity, map);
  }

  /** Digests the records of the chunk that is read next, and offers those whose key is in plain sight. */
  offerUnchanged(bytes: Buffer): void {
    this.#keys.offerUnchanged(bytes, this.#rows);
  }

  /** Reads the chunk, RECORDS_AT_A_TIME by each step; rows and rejects are in the `Rows` this was made with. */
  *read(chunk: ChunkRange, bytes: Buffer): Generator<void, void> {
    const scanner = createLineScanner();
    const wholeIsUtf8 = isUtf8(bytes);
    this.#utf8Reasons = new Utf8Reasons();
    this.#walked?.reset();
    let line = 0;
    for (let start = 0; start < bytes.length; ) {
      const end = scanner.next(bytes, start, bytes.length, true);
      if (!scanner.blank) {
        const record = this.#rows.records.add(start, scanner.contentEnd, line);
        if (record % RECORDS_AT_A_TIME === RECORDS_AT_A_TIME - 1) yield;
        const reason = this.#rows.unchanged.has(record)
          ? null
          : this.#readLine(bytes, start, scanner.contentEnd, record, scanner.problem, wholeIsUtf8);
        if (reason !== null) this.#rows.rejects.push(this.#rows.records.reject(record, reason, chunk, bytes));
      }
      line += scanner.lines;
      start = end;
    }
  }

  #readLine(
    bytes: Buffer,
    start: number,
    end: number,
    record: number,
    problem: string | null,
    wholeIsUtf8: boolean,
  ): Reason | null {
    if (problem !== null) return tooLarge;
    if (!wholeIsUtf8 && !isUtf8(bytes.subarray(start, end)))
      return this.#utf8Reasons.ofRecord(bytes.subarray(start, end));
    if (this.#walked?.read(bytes, start, end, record) === true) return null;
    return this.#parsed.read(bytes.toString('latin1', start, end), record);
  }
}

const tooLarge: Reason = {
  code: 'record_too_large',
  message: 'the record is longer than a record may be',
  column: null,
};
