/**
 * Texts of 12 printable characters that all have the same `hashtextextended(text, 0)`, all 64 bits of it, as an attacker
 * would choose them: the hash (see src/load/map/key-table.ts) has no seed, and so can be run backwards from what is to come out.
 */
export function collidingTexts(count: number): string[] {
  const found: string[] = [];
  for (let free = 0; found.length < count; free++) {
    const text = textOf(free);
    if (/^[!-~]{12}$/.test(text) && !/["\\]/.test(text)) found.push(text);
  }
  return found;
}

const [high, low] = [0x01234567, 0x89abcdec | 0];
const init = (0x9e3779b9 + 12 + 3_923_095) | 0;
const rotate = (value: number, bits: number) => (value << bits) | (value >>> (32 - bits));

/** The 12 bytes whose state ends in `free`, which is not part of the hash, `high` and `low`. */
function textOf(free: number): string {
  let [a, b, c] = [free | 0, high, low];
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
