import type { KeyTable } from './key-table.ts';

const initialRows = 16 * 1024;
/** Characters of a key that it is placed by, after those that all keys begin with. */
const placedBy = 5;
/** Printable ASCII; what lies outside counts as the first or last of it. */
const firstByte = 0x20;
const bytesTold = 96;
/** Place and row share the 53 bits of a number: 96 ** 5 < 2 ** 33. */
const maxRows = 2 ** 20;

/**
 * The rows of a buffer in about the order of their keys. An index whose entries come in order is filled, and looked up, in two
 * thirds of the time: neighbours are in the same page. So it need not be the exact order, only a cheap one: no key is compared with another,
 * the first characters in which keys differ and the number of the row are sorted as one number.
 */
export class KeyOrder {
  #places = new Float64Array(initialRows);

  /** Returns null if the rows are in order as they stand, too many, or none. */
  of(bytes: Buffer, keys: KeyTable): Uint32Array | null {
    const { rows } = keys;
    if (rows === 0 || rows > maxRows) return null;
    while (this.#places.length < rows) this.#places = new Float64Array(this.#places.length * 2);
    const places = this.#places.subarray(0, rows);
    const shared = sharedLength(bytes, keys);
    let isOrdered = true;
    let before = 0;
    for (let row = 0; row < rows; row++) {
      const place = placeOf(bytes, keys.start(row) + shared, keys.end(row));
      if (place < before) isOrdered = false;
      before = place;
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
  for (let at = from; at < from + placedBy; at++) {
    const byte = at < end ? (bytes[at] as number) - firstByte : 0;
    place = place * bytesTold + Math.min(Math.max(byte, 0), bytesTold - 1);
  }
  return place;
}
