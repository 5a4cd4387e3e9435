import { isUtf8 } from 'node:buffer';
import { type Entity, idColumn, type LoadEntity } from '../domain/entity.ts';
import { createLineScanner } from '../formats/record-scanner.ts';
import type { Rows } from './rows.ts';

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const OPEN = 0x7b;

/**
 * Finds, without parsing a line, which profile it is likely to name: the id of `{"user_id":"…"`, wherever in the line it
 * stands. A guess; see `UnchangedRecords`.
 */
export class NdjsonKeys {
  /** Members that may have the id, the likelier one first. */
  readonly #members: readonly { readonly entity: Entity; readonly name: Buffer }[];
  #start = 0;
  #end = 0;

  constructor(entity: LoadEntity, map: Readonly<Record<string, string>>) {
    const likely: readonly Entity[] = entity === 'auto' ? ['users', 'companies'] : [entity];
    this.#members = likely.map((own) => {
      const renamed = Object.keys(map).find((name) => map[name] === idColumn[own]);
      return { entity: own, name: Buffer.from(JSON.stringify(renamed ?? idColumn[own])) };
    });
  }

  /** Digests the records of a chunk, and offers those whose key is found. */
  offerUnchanged(bytes: Buffer, { digests, unchanged }: Rows): void {
    const scanner = createLineScanner();
    const wholeIsUtf8 = isUtf8(bytes);
    unchanged.reset(bytes);
    let record = 0;
    for (let start = 0; start < bytes.length; ) {
      const end = scanner.next(bytes, start, bytes.length, true);
      if (!scanner.blank) {
        digests.add(start, scanner.contentEnd);
        const isReadable =
          scanner.problem === null && (wholeIsUtf8 || isUtf8(bytes.subarray(start, scanner.contentEnd)));
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

  /** Whether the value of the member whose name ends at `at` is a plain text; keeps where it is. */
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

/** Where the first `name` in bytes [start, end) ends, or -1. Most records begin with it. */
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
