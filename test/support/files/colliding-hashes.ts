/**
 * Returns strings of 12 printable characters with the same 64-bit `hashtextextended(text, 0)`. The
 * hash has no secret seed, so an attacker can compute such strings as well.
 * src/load/map/key-table.ts explains the attack.
 */
export function collidingTexts(count: number): string[] {
  const texts: string[] = [];
  for (let free = 0; texts.length < count; free++) {
    const text = textOf(free);
    if (/^[!-~]{12}$/.test(text) && !/["\\]/.test(text)) texts.push(text);
  }
  return texts;
}

const high = 0x01234567;
const low = 0x89abcdec | 0;
const init = (0x9e3779b9 + 12 + 3_923_095) | 0;
const rotate = (value: number, bits: number) => (value << bits) | (value >>> (32 - bits));

/**
 * Computes the 12-byte string that leads to the final hash state `free`, `high`, `low`. Only `high`
 * and `low` become part of the hash, so every value of `free` yields another string with the same
 * hash.
 */
function textOf(free: number): string {
  let a = free | 0;
  let b = high;
  let c = low;
  c = (c + rotate(b, 24)) ^ b;
  b = (b + rotate(a, 14)) ^ a;
  a = (a + rotate(c, 4)) ^ c;
  c = (c + rotate(b, 16)) ^ b;
  b = (b + rotate(a, 25)) ^ a;
  a = (a + rotate(c, 11)) ^ c;
  c = (c + rotate(b, 14)) ^ b;
  b = (b - a) | 0;
  c = ((c ^ rotate(b, 4)) + b) | 0;
  a = (a - c) | 0;
  b = ((b ^ rotate(a, 19)) + a) | 0;
  c = (c - b) | 0;
  a = ((a ^ rotate(c, 16)) + c) | 0;
  b = (b - a) | 0;
  c = ((c ^ rotate(b, 8)) + b) | 0;
  a = (a - c) | 0;
  b = ((b ^ rotate(a, 6)) + a) | 0;
  c = (c - b) | 0;
  a = ((a ^ rotate(c, 4)) + c) | 0;
  const bytes = Buffer.alloc(12);
  bytes.writeInt32LE((a - init) | 0, 0);
  bytes.writeInt32LE((b - init) | 0, 4);
  bytes.writeInt32LE((c - init) | 0, 8);
  return bytes.toString('latin1');
}
