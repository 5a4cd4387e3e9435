import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync, inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GzipBlocks } from '../../../../src/export/write/attempt-files.ts';

const headerBytes = 10;
const sumBytes = 8;

async function packed(pieces: readonly Uint8Array[], blockBytes: number): Promise<Buffer> {
  const stored: Buffer[] = [];
  const gzip = new GzipBlocks(blockBytes, async (bytes) => {
    stored.push(Buffer.from(bytes));
  });
  for (const piece of pieces) await gzip.write(piece);
  await gzip.end();
  return Buffer.concat(stored);
}

/** What a reader makes of it that stops at the end of the first deflate stream, and how much it has read then. */
function firstMember(file: Buffer): { readonly bytes: Buffer; readonly read: number } {
  const { buffer, engine } = inflateRawSync(file.subarray(headerBytes), { info: true }) as unknown as {
    readonly buffer: Buffer;
    readonly engine: { readonly bytesWritten: number };
  };
  return { bytes: buffer, read: engine.bytesWritten };
}

const rows = Buffer.from(
  Array.from({ length: 20_000 }, (_, n) => `{"user_id":"u${n}","plan":"free"}\n`).join(''),
);

describe('a file that is packed in blocks', () => {
  // proves: gzip-one-member
  test('unpacks to what was written, whatever the pieces and the blocks, and is the same file each time', async () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.string({ maxLength: 300 }).map((text) => Buffer.from(text)),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 12 }),
        fc.integer({ min: 1, max: 400 }),
        async (pieces, size) => {
          const whole = Buffer.concat(pieces);
          const file = await packed(pieces, size);
          expect(gunzipSync(file).equals(whole)).toBe(true);
          expect((await packed([whole], size)).equals(file)).toBe(true);
        },
      ),
      { numRuns: 100 },
    );
  });

  // proves: gzip-one-member
  test('is one member, for readers that take no more than the first', async () => {
    const file = await packed([rows], 10_000);
    const { bytes, read } = firstMember(file);
    expect(bytes.equals(rows)).toBe(true);
    expect(read).toBe(file.length - headerBytes - sumBytes);
    const stream = new Blob([file]).stream().pipeThrough(new DecompressionStream('gzip'));
    expect(Buffer.from(await new Response(stream).arrayBuffer()).equals(rows)).toBe(true);
  });

  // proves: gzip-one-member
  test('is taken by gzip -t', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-gzip-'));
    try {
      await writeFile(join(folder, 'rows.gz'), await packed([rows], 10_000));
      await writeFile(join(folder, 'empty.gz'), await packed([], 10_000));
      await promisify(execFile)('gzip', ['-t', join(folder, 'rows.gz'), join(folder, 'empty.gz')]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('is hardly larger than one packed in one go: a block knows what the one before it ended in', async () => {
    const file = await packed([rows], 64 * 1024);
    expect(file.length).toBeLessThan(1.05 * gzipSync(rows, { level: 2 }).length);
  });

  test('is given up with the error of what stores it, and nothing is left under way', async () => {
    const gzip = new GzipBlocks(1_000, () => Promise.reject(new Error('the disk is full')));
    await expect(gzip.write(rows)).rejects.toThrow('the disk is full');
    await gzip.discard();
  });
});
