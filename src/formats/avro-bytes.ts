import { DamagedFile } from '../domain/errors.ts';

/** Reads the primitive values of Avro, and never beyond the end of the bytes. */
export class AvroBytes {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new DamagedFile('a row ends early');
    return byte;
  }

  take(length: number): Buffer {
    if (length < 0 || length > this.left) throw new DamagedFile('a value is longer than its block');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** A length, or how many of something follow. */
  varint(): number {
    let [value, factor] = [0, 1];
    for (let read = 0; read < 5; read++) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      factor *= 0x80;
      if (byte < 0x80) return value;
    }
    throw new DamagedFile('a length is too large');
  }

  /** Exact: a bigint where a number would not be. */
  long(): number | bigint {
    const start = this.#at;
    let [value, factor] = [0, 1];
    for (let read = 0; read < 7; read++) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      factor *= 0x80;
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
    this.#at = start;
    return this.#large();
  }

  /** A length, an index, a count: what must be small. */
  small(): number {
    const value = this.long();
    if (typeof value === 'bigint') throw new DamagedFile('a length is too large');
    return value;
  }

  float(): number {
    return this.take(4).readFloatLE();
  }

  double(): number {
    return this.take(8).readDoubleLE();
  }

  #large(): number | bigint {
    let value = 0n;
    for (let read = 0n; read < 10n; read++) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << (7n * read);
      if (byte >= 0x80) continue;
      const signed = BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n));
      const number = Number(signed);
      return Number.isSafeInteger(number) ? number : signed;
    }
    throw new DamagedFile('a number has more than 64 bits');
  }
}
