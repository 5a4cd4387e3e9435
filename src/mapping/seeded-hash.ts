import { randomFillSync } from 'node:crypto';

/**
 * HalfSipHash-1-3 (https://github.com/veorq/SipHash): 32 bits of hash for tables in memory, under a secret key of 64 bits.
 * Without the key nobody can choose texts that fall into one bucket. Never to be stored or compared between processes:
 * `KeyHash` is for that.
 */
export class SeededHash {
  readonly #seed = randomFillSync(new Int32Array(2));

  /** Another key: all hashes change. */
  reseed(): void {
    randomFillSync(this.#seed);
  }

  /** Of bytes [start, end). */
  of(bytes: Uint8Array, start: number, end: number): number {
    const k0 = this.#seed[0] ?? 0;
    const k1 = this.#seed[1] ?? 0;
    let v0 = k0;
    let v1 = k1;
    let v2 = 0x6c796765 ^ k0;
    let v3 = 0x74656462 ^ k1;
    // Words of four bytes; then one of what is left and the length; then three rounds without a word.
    let rounds = ((end - start) >> 2) + 4;
    for (let at = start; rounds > 0; rounds--, at += 4) {
      let word = 0;
      if (rounds > 4) {
        word =
          (bytes[at] as number) |
          ((bytes[at + 1] as number) << 8) |
          ((bytes[at + 2] as number) << 16) |
          ((bytes[at + 3] as number) << 24);
      } else if (rounds === 4) {
        word = (end - start) << 24;
        for (let rest = at; rest < end; rest++) word |= (bytes[rest] as number) << (8 * (rest - at));
      } else if (rounds === 3) v2 ^= 0xff;
      v3 ^= word;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    return v1 ^ v3;
  }
}
