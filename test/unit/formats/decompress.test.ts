import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { gunzip } from '../../../src/formats/decompress.ts';
import { bytewise, collect, inPieces, refusalOf } from './in-pieces.ts';

const first = gzipSync('hello '.repeat(20));
const second = gzipSync('world');
const text = `${'hello '.repeat(20)}world`;
const unguarded = () => undefined;

async function unpack(bytes: Buffer, ends: readonly number[] = []): Promise<string> {
  return (await collect(gunzip(inPieces(bytes, ends), unguarded))).toString();
}

const refusal = (bytes: Buffer, ends: readonly number[] = []) => refusalOf(unpack(bytes, ends));

it('concatenated members are joined, for any ends of buffers', async () => {
  const members = Buffer.concat([first, second]);
  for (const end of bytewise(members)) expect(await unpack(members, [end]), `split at ${end}`).toBe(text);
  expect(await unpack(members, bytewise(members))).toBe(text);
});

it('zero bytes after the last member are accepted, for any ends of buffers', async () => {
  const padded = Buffer.concat([first, second, Buffer.alloc(20)]);
  for (const end of bytewise(padded)) expect(await unpack(padded, [end]), `split at ${end}`).toBe(text);
  expect(await unpack(padded, bytewise(padded))).toBe(text);
});

it('data that ends early is refused at every byte', async () => {
  const members = Buffer.concat([first, second]);
  for (const end of bytewise(members)) {
    if (end === first.length || end === members.length) continue;
    expect(await refusal(members.subarray(0, end)), `cut at ${end}`).toBe('The gzip data ends early');
  }
});

it('anything but gzip after a member is refused, for any ends of buffers', async () => {
  for (const trailer of ['g', 'garbage', '\0\0garbage', '\0\x1f\x8b\x08', '\x1f\x8bxx']) {
    const bytes = Buffer.concat([first, Buffer.from(trailer, 'latin1')]);
    for (const end of bytewise(bytes))
      expect(await refusal(bytes, [end]), trailer).toMatch(/^The gzip data /);
    expect(await refusal(bytes, bytewise(bytes)), trailer).toMatch(/^The gzip data /);
  }
});

it('data with a wrong checksum is refused', async () => {
  const damaged = Buffer.from(first);
  damaged.writeUInt32LE(1, damaged.length - 8);
  expect(await refusal(damaged)).toContain('is damaged: incorrect data check');
});

it('the guard sees every byte, and an error from it stops the reading', async () => {
  const bytes = gzipSync(Buffer.alloc(4 << 20));
  let bytesSeen = 0;
  const stop = new Error('enough');
  const guarded = gunzip(inPieces(bytes, []), (count) => {
    bytesSeen += count;
    if (bytesSeen > 1 << 20) throw stop;
  });
  await expect(collect(guarded)).rejects.toBe(stop);
  expect(bytesSeen).toBeLessThan(2 << 20);
});
