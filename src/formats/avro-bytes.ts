/** Something that no Avro file can hold; the message goes into a sentence. */
export class AvroDamage extends Error {
  override readonly name = 'AvroDamage';
}

/** Values that may be read for each byte of a block: some take no byte, as null does. */
const VALUES_PER_BYTE = 4;
const SPARE_VALUES = 1_000;

/** Reads what Avro writes. Never reads beyond its end, and reads no more values than its length allows. */
export class AvroBytes {
  readonly #bytes: Buffer;
  #at = 0;
  #values: number;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#values = VALUES_PER_BYTE * bytes.length + SPARE_VALUES;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  /** To be called for each value, however small. */
  countValue(): void {
    if (--this.#values < 0) throw new AvroDamage('it holds more values than bytes');
  }

  byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new AvroDamage('a row ends early');
    return byte;
  }

  take(length: number): Buffer {
    if (length < 0 || length > this.left) throw new AvroDamage('a value is longer than its block');
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
    throw new AvroDamage('a length is too large');
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
    if (typeof value === 'bigint') throw new AvroDamage('a length is too large');
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
    throw new AvroDamage('a number has more than 64 bits');
  }
}
