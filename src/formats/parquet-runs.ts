import { DamagedFile } from '../domain/errors.ts';

/**
 * Runs are how Parquet writes levels and dictionary indexes: a repeated value and its count, or values of a few bits side by
 * side. They are read one value at a time, so a run of a thousand million values, five bytes long, takes no memory.
 */
export class Runs {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #width: number;
  readonly #mask: number;
  #at: number;
  /** Values left of the run. */
  #left = 0;
  #isPacked = false;
  /** The value that is repeated. */
  #value = 0;
  /** Bits of the packed run that have been read. */
  #bit = 0;

  /** Reads values of `width` bits between two positions; with a width of 0 they take no bytes and are all 0. */
  constructor(bytes: Uint8Array, start: number, end: number, width: number) {
    if (width > MAX_WIDTH || start < 0 || start > end || end > bytes.length) {
      throw new DamagedFile('a page is shorter than it says');
    }
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#width = width;
    this.#mask = 2 ** width - 1;
  }

  next(): number {
    if (this.#width === 0) return 0;
    while (this.#left === 0) this.#open();
    this.#left--;
    return this.#isPacked ? this.#unpack() : this.#value;
  }

  #open(): void {
    if (this.#isPacked) this.#at += Math.ceil(this.#bit / 8);
    const header = this.#varint();
    this.#isPacked = (header & 1) === 1;
    this.#left = this.#isPacked ? (header >>> 1) * 8 : header >>> 1;
    this.#bit = 0;
    if (this.#isPacked) return;
    this.#value = 0;
    for (let shift = 0; shift < this.#width; shift += 8) this.#value |= this.#byte(this.#at++) << shift;
    this.#value >>>= 0;
  }

  #unpack(): number {
    const first = this.#at + (this.#bit >>> 3);
    const shift = this.#bit & 7;
    this.#bit += this.#width;
    const last = this.#at + ((this.#bit - 1) >>> 3);
    if (last >= this.#end) throw early();
    let value = (this.#bytes[first] ?? 0) >>> shift;
    let factor = 2 ** (8 - shift);
    for (let at = first + 1; at <= last; at++) {
      value += (this.#bytes[at] ?? 0) * factor;
      factor *= 256;
    }
    return this.#width === MAX_WIDTH ? value % 2 ** MAX_WIDTH : (value & this.#mask) >>> 0;
  }

  /** Reads at most five bytes: a run has fewer values than a page may have. */
  #varint(): number {
    for (let value = 0, shift = 0; shift < 35; shift += 7) {
      const byte = this.#byte(this.#at++);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new DamagedFile('a run has no length');
  }

  #byte(at: number): number {
    if (at >= this.#end) throw early();
    return this.#bytes[at] ?? 0;
  }
}

const MAX_WIDTH = 32;

function early(): DamagedFile {
  return new DamagedFile('a page has fewer values than it says');
}

/** Returns how many bits a level of at most `level` takes. */
export function bitWidth(level: number): number {
  return 32 - Math.clz32(level);
}
