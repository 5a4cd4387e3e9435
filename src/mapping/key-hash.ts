/**
 * The 64-bit hash that PostgreSQL's `hashtextextended(key, 0)` gives, computed here so that keys need not be read back:
 * Bob Jenkins' lookup3 as in PostgreSQL's `common/hashfn.c`. A test holds it to the server's on every version in use.
 *
 * The result is left in `high` and `low`, both signed 32-bit: no object, no BigInt, per key.
 */
export class KeyHash {
  high = 0;
  low = 0;

  /** Hashes bytes [start, end). */
  update(bytes: Uint8Array, start: number, end: number): void {
    let left = end - start;
    let at = start;
    let a = (0x9e3779b9 + left + 3_923_095) | 0;
    let b = a;
    let c = a;
    for (; left >= 12; left -= 12, at += 12) {
      a = (a + word(bytes, at)) | 0;
      b = (b + word(bytes, at + 4)) | 0;
      c = (c + word(bytes, at + 8)) | 0;
      a = ((a - c) | 0) ^ rotate(c, 4);
      c = (c + b) | 0;
      b = ((b - a) | 0) ^ rotate(a, 6);
      a = (a + c) | 0;
      c = ((c - b) | 0) ^ rotate(b, 8);
      b = (b + a) | 0;
      a = ((a - c) | 0) ^ rotate(c, 16);
      c = (c + b) | 0;
      b = ((b - a) | 0) ^ rotate(a, 19);
      a = (a + c) | 0;
      c = ((c - b) | 0) ^ rotate(b, 4);
      b = (b + a) | 0;
    }
    // The rest, up to 11 bytes; the lowest byte of c is reserved for the length.
    for (let i = 0; i < left; i++) {
      const byte = bytes[at + i] ?? 0;
      if (i < 4) a = (a + (byte << (8 * i))) | 0;
      else if (i < 8) b = (b + (byte << (8 * (i - 4)))) | 0;
      else c = (c + (byte << (8 * (i - 7)))) | 0;
    }
    c = ((c ^ b) - rotate(b, 14)) | 0;
    a = ((a ^ c) - rotate(c, 11)) | 0;
    b = ((b ^ a) - rotate(a, 25)) | 0;
    c = ((c ^ b) - rotate(b, 16)) | 0;
    a = ((a ^ c) - rotate(c, 4)) | 0;
    b = ((b ^ a) - rotate(a, 14)) | 0;
    c = ((c ^ b) - rotate(b, 24)) | 0;
    this.high = b;
    this.low = c;
  }
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function word(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24)
  );
}
