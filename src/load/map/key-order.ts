import type { KeyTable } from './key-table.ts';

const initialRows = 16 * 1024;
/** Only this many characters of each key are compared, after the prefix that all keys share. */
const comparedChars = 5;
/** Any byte that is not printable ASCII counts as the first or the last printable one. */
const firstByte = 0x20;
const distinctBytes = 96;
/**
 * The 53 bits of a number contain five characters of a key (33 bits, because 96 ** 5 < 2 ** 33) and
 * the number of the key's row (20 bits).
 */
const maxRows = 2 ** 20;

/**
 * Sorts rows approximately by key, because PostgreSQL fills or searches an index in two thirds of
 * the time if neighbouring keys follow each other. Sorting whole keys would be slow. Instead, each
 * row becomes one number, made from the first characters in which keys differ and from the row's
 * number.
 */
export class KeyOrder {
  #places = new Float64Array(initialRows);

  /**
   * Returns the rows in key order. Returns `null` if they are already in this order, if there are
   * none, or if there are too many.
   */
  of(bytes: Buffer, keys: KeyTable): Uint32Array | null {
    const { rows } = keys;
    if (rows === 0 || rows > maxRows) return null;
    while (this.#places.length < rows) this.#places = new Float64Array(this.#places.length * 2);
    const places = this.#places.subarray(0, rows);
    const shared = sharedLength(bytes, keys);
    let isOrdered = true;
    let previous = 0;
    for (let row = 0; row < rows; row++) {
      const place = placeOf(bytes, keys.start(row) + shared, keys.end(row));
      if (place < previous) isOrdered = false;
      previous = place;
      places[row] = place * maxRows + row;
    }
    if (isOrdered) return null;
    places.sort();
    const order = new Uint32Array(rows);
    for (let at = 0; at < rows; at++) {
      const place = places[at] as number;
      order[at] = place - Math.floor(place / maxRows) * maxRows;
    }
    return order;
  }
}

function sharedLength(bytes: Buffer, keys: KeyTable): number {
  const first = keys.start(0);
  let shared = keys.end(0) - first;
  for (let row = 1; row < keys.rows && shared > 0; row++) {
    const start = keys.start(row);
    shared = Math.min(shared, keys.end(row) - start);
    for (let at = 0; at < shared; at++) if (bytes[start + at] !== bytes[first + at]) shared = at;
  }
  return shared;
}

function placeOf(bytes: Buffer, from: number, end: number): number {
  let place = 0;
  for (let at = from; at < from + comparedChars; at++) {
    const byte = at < end ? (bytes[at] as number) - firstByte : 0;
    place = place * distinctBytes + Math.min(Math.max(byte, 0), distinctBytes - 1);
  }
  return place;
}
