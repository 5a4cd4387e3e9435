import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digestKey, RecordMac } from '../../../src/load/map/record-digests.ts';

const mask = 0xffff_ffffn;

/** Chaskey-12 as specified. Each block is a number of 128 bits. */
function chaskey12(key: readonly bigint[], message: Uint8Array): bigint[] {
  const rotate = (v: bigint, bits: bigint): bigint => ((v << bits) | (v >> (32n - bits))) & mask;
  const join = (words: readonly bigint[]): bigint =>
    words.reduce((sum, word, index) => sum | (word << BigInt(32 * index)), 0n);
  const words = (value: bigint): bigint[] => [0n, 32n, 64n, 96n].map((bits) => (value >> bits) & mask);
  const double = (value: bigint): bigint =>
    ((value << 1n) & ((1n << 128n) - 1n)) ^ (value >> 127n === 1n ? 0x87n : 0n);
  const permute = (value: bigint): bigint => {
    let [v0 = 0n, v1 = 0n, v2 = 0n, v3 = 0n] = words(value);
    for (let round = 0; round < 12; round++) {
      v0 = (v0 + v1) & mask;
      v1 = rotate(v1, 5n) ^ v0;
      v0 = rotate(v0, 16n);
      v2 = (v2 + v3) & mask;
      v3 = rotate(v3, 8n) ^ v2;
      v0 = (v0 + v3) & mask;
      v3 = rotate(v3, 13n) ^ v0;
      v2 = (v2 + v1) & mask;
      v1 = rotate(v1, 7n) ^ v2;
      v2 = rotate(v2, 16n);
    }
    return join([v0, v1, v2, v3]);
  };
  const blocks: bigint[] = [];
  for (let at = 0; at < message.length || at === 0; at += 16) {
    const block = message.subarray(at, at + 16);
    blocks.push([...block].reduce((sum, byte, index) => sum | (BigInt(byte) << BigInt(8 * index)), 0n));
  }
  const isWhole = message.length > 0 && message.length % 16 === 0;
  const lastBlock = blocks.pop() ?? 0n;
  const k = join(key);
  const lastKey = isWhole ? double(k) : double(double(k));
  const end = isWhole ? lastBlock : lastBlock | (1n << BigInt(8 * (message.length % 16)));
  const state = blocks.reduce((sum, block) => permute(sum ^ block), k);
  return words(permute(state ^ end ^ lastKey) ^ lastKey);
}

test('records are digested by Chaskey-12, for any length and position', () => {
  const words = fc.uint32Array({ minLength: 4, maxLength: 4 });
  const property = fc.property(
    words,
    fc.uint8Array({ maxLength: 70 }),
    fc.nat({ max: 5 }),
    (key, message, at) => {
      const mac = new RecordMac();
      mac.setKey(Int32Array.from(key));
      const out = new Int32Array(6);
      const bytes = Buffer.concat([Buffer.alloc(at, 7), message, Buffer.alloc(3, 9)]);
      mac.digest(bytes, at, at + message.length, out, 1);
      const expected = chaskey12([...key].map(BigInt), message);
      expect([...out.subarray(1, 5)].map((word) => BigInt(word >>> 0))).toEqual(expected);
    },
  );
  fc.assert(property);
});

test('the secret and every part of the mapping change the key of the digest', () => {
  const keys = [
    digestKey('secret', ['users', 'csv', { columns: ['user_id', 'a'] }, {}]),
    digestKey('secret', ['users', 'csv', { columns: ['user_id', 'b'] }, {}]),
    digestKey('secret', ['companies', 'csv', { columns: ['user_id', 'a'] }, {}]),
    digestKey('secret', ['users', 'csv', { columns: ['user_id', 'a'] }, { a: 'b' }]),
    digestKey('other', ['users', 'csv', { columns: ['user_id', 'a'] }, {}]),
  ];
  expect(new Set(keys.map(String)).size).toBe(keys.length);
});
