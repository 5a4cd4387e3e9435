import { isUtf8 } from 'node:buffer';
import { type Entity, idColumn, type LoadEntity } from '../../domain/entity.ts';
import type { ChunkRange } from '../../domain/load.ts';
import type { Reason } from '../../domain/reject.ts';
import { createLineScanner, type ScanProblem } from '../../formats/record-scanner.ts';
import { RECORDS_AT_A_TIME } from '../limits.ts';
import { JsonRecords, type RecordReading } from './json-records.ts';
import { malformed, notUtf8 } from './reasons.ts';
import type { Rows } from './rows.ts';

export class NdjsonRows {
  readonly hasKinds = false;
  readonly #rows: Rows;
  readonly #records: JsonRecords;
  readonly #keys: NdjsonKeys;

  constructor(reading: RecordReading, rows: Rows) {
    this.#rows = rows;
    this.#records = new JsonRecords(reading, rows);
    this.#keys = new NdjsonKeys(reading.entity, reading.map);
  }

  /** Computes the digests of the next chunk, and searches for unchanged records with plain ids. */
  offerUnchanged(bytes: Buffer): void {
    this.#keys.offerUnchanged(bytes, this.#rows);
  }

  /** Reads the chunk into `Rows`, RECORDS_AT_A_TIME records per step. */
  *read(chunk: ChunkRange, bytes: Buffer): Generator<void, void> {
    const scanner = createLineScanner();
    const isChunkUtf8 = isUtf8(bytes);
    this.#records.reset();
    let line = 0;
    for (let start = 0; start < bytes.length; ) {
      const end = scanner.next(bytes, start, bytes.length, true);
      if (!scanner.blank) {
        const record = this.#rows.records.add(start, scanner.contentEnd, line);
        if (record % RECORDS_AT_A_TIME === RECORDS_AT_A_TIME - 1) yield;
        const reason =
          this.#rows.refusalOf(record) ??
          (this.#rows.unchanged.has(record)
            ? null
            : this.#readLine(bytes, start, scanner.contentEnd, record, scanner.problem, isChunkUtf8));
        if (reason !== null) this.#rows.addReject(this.#rows.records.reject(record, reason, chunk, bytes));
      }
      line += scanner.lines;
      start = end;
    }
  }

  /**
   * ID of the record's user, even if the record was refused. `null` if the record has no valid user
   * id.
   */
  userOf(record: number): string | null {
    const { bytes, records } = this.#rows;
    return this.#records.userOf(bytes.toString('utf8', records.starts[record], records.ends[record]));
  }

  #readLine(
    bytes: Buffer,
    start: number,
    end: number,
    record: number,
    problem: ScanProblem | null,
    isChunkUtf8: boolean,
  ): Reason | null {
    if (problem !== null) return malformed(problem);
    if (!isChunkUtf8 && !isUtf8(bytes.subarray(start, end))) return notUtf8(bytes.subarray(start, end));
    return this.#records.read(bytes, start, end, record);
  }
}

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const OPEN = 0x7b;

/**
 * Assumes that the first `"user_id":"…"` in a line is the id of the record. `UnchangedRecords` can
 * deal with a wrong id.
 */
class NdjsonKeys {
  readonly #members: readonly { readonly entity: Entity; readonly name: Buffer }[];
  #start = 0;
  #end = 0;

  constructor(entity: LoadEntity, map: Readonly<Record<string, string>>) {
    const likely: readonly Entity[] = entity === 'auto' ? ['users', 'companies'] : [entity];
    this.#members = likely.map((idEntity) => {
      const mappedName = Object.keys(map).find((name) => map[name] === idColumn[idEntity]);
      return { entity: idEntity, name: Buffer.from(JSON.stringify(mappedName ?? idColumn[idEntity])) };
    });
  }

  offerUnchanged(bytes: Buffer, { digests, unchanged }: Rows): void {
    const scanner = createLineScanner();
    const isChunkUtf8 = isUtf8(bytes);
    unchanged.reset(bytes);
    let record = 0;
    for (let start = 0; start < bytes.length; ) {
      const end = scanner.next(bytes, start, bytes.length, true);
      if (!scanner.blank) {
        digests.add(start, scanner.contentEnd);
        const isReadable =
          scanner.problem === null && (isChunkUtf8 || isUtf8(bytes.subarray(start, scanner.contentEnd)));
        const entity = isReadable ? this.#find(bytes, start, scanner.contentEnd) : null;
        if (entity !== null) unchanged.offer(entity, record, this.#start, this.#end);
        record++;
      }
      start = end;
    }
  }

  #find(bytes: Buffer, start: number, end: number): Entity | null {
    for (const { entity, name } of this.#members) {
      const at = findMember(bytes, start, end, name);
      if (at !== -1) return this.#isText(bytes, at, end) ? entity : null;
    }
    return null;
  }

  /** True if the value is a string without escapes. Stores its position. */
  #isText(bytes: Buffer, at: number, end: number): boolean {
    let from = at;
    while (from < end && (bytes[from] === COLON || bytes[from] === SPACE)) from++;
    if (bytes[from] !== QUOTE) return false;
    let to = ++from;
    while (to < end && bytes[to] !== QUOTE && bytes[to] !== BACKSLASH) to++;
    this.#start = from;
    this.#end = to;
    return to < end && bytes[to] === QUOTE;
  }
}

/** Position after the first occurrence of `name`, or -1. Most records begin with `name`. */
function findMember(bytes: Buffer, start: number, end: number, name: Buffer): number {
  const first = bytes[start] === OPEN ? start + 1 : start;
  if (startsWith(bytes, first, end, name)) return first + name.length;
  const at = bytes.subarray(start, end).indexOf(name);
  return at === -1 ? -1 : start + at + name.length;
}

function startsWith(bytes: Buffer, at: number, end: number, name: Buffer): boolean {
  if (at + name.length > end) return false;
  for (let byte = 0; byte < name.length; byte++) if (bytes[at + byte] !== name[byte]) return false;
  return true;
}
