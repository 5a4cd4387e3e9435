export const typeBigint = 20;
export const typeText = 25;
export const typeUuid = 2950;

/** Array in PostgreSQL's binary format, with one dimension and without nulls. */
export class BinaryArray {
  readonly bytes: Buffer;
  #at: number;

  constructor(type: number, count: number, bytes: number) {
    this.bytes = Buffer.allocUnsafe(20 + 4 * count + bytes);
    this.#at = 0;
    for (const value of [1, 0, type, count, 1]) this.#at = this.bytes.writeInt32BE(value, this.#at);
  }

  /** Returns the position at which the caller must write an element of `length` bytes. */
  reserve(length: number): number {
    const at = this.bytes.writeInt32BE(length, this.#at);
    this.#at = at + length;
    return at;
  }
}

/** Returns a text[] in binary format. `texts` are byte strings. */
export function textArray(texts: readonly string[]): Buffer {
  const bytes = texts.reduce((sum, { length }) => sum + length, 0);
  const array = new BinaryArray(typeText, texts.length, bytes);
  for (const text of texts) array.bytes.write(text, array.reserve(text.length), 'latin1');
  return array.bytes;
}
