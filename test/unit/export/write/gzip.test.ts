import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync, inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GzipBlocks } from '../../../../src/export/write/attempt-files.ts';
import { cleanUpAfter } from '../../../support/cleanups.ts';
import { runs } from '../../../support/runs.ts';

const headerBytes = 10;
const sumBytes = 8;

async function pack(pieces: readonly Uint8Array[], blockBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const gzip = new GzipBlocks(blockBytes, async (bytes) => {
    chunks.push(Buffer.from(bytes));
  });
  for (const piece of pieces) await gzip.write(piece);
  await gzip.end();
  return Buffer.concat(chunks);
}

/** Decompresses the first deflate stream of the file. Also returns its length in bytes. */
function firstMember(file: Buffer): { readonly bytes: Buffer; readonly readBytes: number } {
  const { buffer, engine } = inflateRawSync(file.subarray(headerBytes), { info: true }) as unknown as {
    readonly buffer: Buffer;
    readonly engine: { readonly bytesWritten: number };
  };
  return { bytes: buffer, readBytes: engine.bytesWritten };
}

const rows = Buffer.from(
  Array.from({ length: 20_000 }, (_, n) => `{"user_id":"u${n}","plan":"free"}\n`).join(''),
);

// proves: gzip-one-member
test('any pieces and blocks unpack to the written bytes, and to one same file', async () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.string({ maxLength: 300 }).map((text) => Buffer.from(text)),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 12 }),
      fc.integer({ min: 1, max: 400 }),
      async (pieces, size) => {
        const content = Buffer.concat(pieces);
        const file = await pack(pieces, size);
        expect(gunzipSync(file).equals(content)).toBe(true);
        expect((await pack([content], size)).equals(file)).toBe(true);
      },
    ),
    { numRuns: runs(100) },
  );
});

// proves: gzip-one-member
test('a packed file is one gzip member, for readers that stop after the first', async () => {
  const file = await pack([rows], 10_000);
  const { bytes, readBytes } = firstMember(file);
  expect(bytes.equals(rows)).toBe(true);
  expect(readBytes).toBe(file.length - headerBytes - sumBytes);
  const stream = new Blob([file]).stream().pipeThrough(new DecompressionStream('gzip'));
  expect(Buffer.from(await new Response(stream).arrayBuffer()).equals(rows)).toBe(true);
});

// proves: gzip-one-member
test('a packed file passes gzip -t', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-gzip-'));
  cleanUpAfter('test', () => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'rows.gz'), await pack([rows], 10_000));
  await writeFile(join(folder, 'empty.gz'), await pack([], 10_000));
  await promisify(execFile)('gzip', ['-t', join(folder, 'rows.gz'), join(folder, 'empty.gz')]);
});

test('a file packed in blocks is at most 5% larger than one packed at once', async () => {
  const file = await pack([rows], 64 * 1024);
  expect(file.length).toBeLessThan(1.05 * gzipSync(rows, { level: 2 }).length);
});

test('a failed write ends the file with the error of the store', async () => {
  const gzip = new GzipBlocks(1_000, () => Promise.reject(new Error('the disk is full')));
  await expect(gzip.write(rows)).rejects.toThrow('the disk is full');
  await gzip.discard();
});
