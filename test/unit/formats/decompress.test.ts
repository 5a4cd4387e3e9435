import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
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

describe('gunzip', () => {
  it('joins concatenated members, wherever the buffers end', async () => {
    const both = Buffer.concat([first, second]);
    for (const end of bytewise(both)) expect(await unpack(both, [end]), `split at ${end}`).toBe(text);
    expect(await unpack(both, bytewise(both))).toBe(text);
  });

  it('allows zero bytes after the last member, wherever the buffers end', async () => {
    const padded = Buffer.concat([first, second, Buffer.alloc(20)]);
    for (const end of bytewise(padded)) expect(await unpack(padded, [end]), `split at ${end}`).toBe(text);
    expect(await unpack(padded, bytewise(padded))).toBe(text);
  });

  it('refuses data that ends early, wherever', async () => {
    const both = Buffer.concat([first, second]);
    for (const end of bytewise(both)) {
      if (end === first.length || end === both.length) continue;
      expect(await refusal(both.subarray(0, end)), `cut at ${end}`).toBe('The gzip data ends early');
    }
  });

  it('refuses anything but gzip after a member, wherever the buffers end', async () => {
    for (const rest of ['g', 'garbage', '\0\0garbage', '\0\x1f\x8b\x08', '\x1f\x8bxx']) {
      const bytes = Buffer.concat([first, Buffer.from(rest, 'latin1')]);
      for (const end of bytewise(bytes)) expect(await refusal(bytes, [end]), rest).toMatch(/^The gzip data /);
      expect(await refusal(bytes, bytewise(bytes)), rest).toMatch(/^The gzip data /);
    }
  });

  it('refuses data whose checksum is wrong', async () => {
    const damaged = Buffer.from(first);
    damaged.writeUInt32LE(1, damaged.length - 8);
    expect(await refusal(damaged)).toContain('is damaged: incorrect data check');
  });

  it('tells the guard of every byte, and stops when it throws', async () => {
    const bytes = gzipSync(Buffer.alloc(4 << 20));
    let seen = 0;
    const stop = new Error('enough');
    const guarded = gunzip(inPieces(bytes, []), (count) => {
      seen += count;
      if (seen > 1 << 20) throw stop;
    });
    await expect(collect(guarded)).rejects.toBe(stop);
    expect(seen).toBeLessThan(2 << 20);
  });

  it('passes on what the source throws', async () => {
    const broken = new Error('connection lost');
    async function* cutOff(): AsyncGenerator<Buffer> {
      yield first.subarray(0, 20);
      throw broken;
    }
    await expect(collect(gunzip(cutOff(), unguarded))).rejects.toBe(broken);
  });
});
