import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/base/config.ts';
import { Fault, TransientError } from '../../src/base/errors.ts';
import type { S3Location } from '../../src/base/storage-url.ts';
import {
  type FileFolder,
  type FileRef,
  type FileStore,
  MissingFileError,
} from '../../src/files/file-store.ts';
import { createS3Store } from '../../src/files/s3-store.ts';
import { openFileStore } from '../../src/files/storage.ts';
import { runs } from '../support/runs.ts';
import { deadEndpoint, startS3, type TestS3 } from '../support/servers/s3.ts';
import { waitFor } from '../support/wait-for.ts';

const MiB = 1 << 20;

/** A file store, with direct access to the names of its files. */
interface Site {
  readonly store: FileStore;
  /** Returns the names of all files, committed and unfinished. */
  files(): Promise<string[]>;
  /** Settings that select this store. */
  readonly variables: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

async function openFolder(): Promise<Site> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-store-'));
  const variables = { STORAGE_URL: join(folder, 'files') };
  return {
    store: openStore(variables),
    variables,
    files: async () =>
      (await readdir(folder, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map((entry) => entry.name),
    close: () => rm(folder, { recursive: true }),
  };
}

let s3: TestS3;
async function openBucket(): Promise<Site> {
  s3 = await startS3();
  return {
    store: openStore(s3.variables),
    variables: s3.variables,
    files: async () => [...(await s3.objects()), ...(await s3.uploads())],
    close: () => s3.stop(),
  };
}

function openStore(variables: Readonly<Record<string, string>>): FileStore {
  return openFileStore(readConfig(variables).storage, 1 << 30);
}

function s3Location(): S3Location {
  const { storage } = readConfig(s3.variables);
  if (storage.kind !== 's3') throw new Error('no bucket');
  return storage;
}

/** A member of Node's sockets that is missing from their type. */
interface Handled {
  readonly _handle: { readStop(): void };
}

/** Returns bytes without repetitions, so that shifted content is detected. */
function pattern(length: number, seed = 0): Buffer {
  const words = new Uint32Array(Math.ceil(length / 4));
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(i + seed, 2_654_435_761);
  return Buffer.from(words.buffer, 0, length);
}

async function save(store: FileStore, bytes: Uint8Array, folder?: FileFolder): Promise<FileRef> {
  const writer = await store.create(folder);
  await writer.write(bytes);
  return writer.commit();
}

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

// proves: s3
describe.each([
  ['a folder', openFolder],
  ['a bucket', openBucket],
])('files in %s', (_name, open) => {
  let site: Site;
  let store: FileStore;
  beforeAll(async () => {
    site = await open();
    store = site.store;
  });
  afterAll(() => site.close());

  test('a stored file reads as it was written, whole and in part', async () => {
    const ref = await save(store, Buffer.from('hello world'));
    expect((await collect(store.open(ref))).toString()).toBe('hello world');
    expect((await collect(store.open(ref, { start: 0, end: 1 }))).toString()).toBe('h');
    expect((await store.readRange(ref, 6, 11)).toString()).toBe('world');
    expect(await store.readRange(ref, 3, 3)).toHaveLength(0);
    const empty = await (await store.create()).commit();
    expect(await collect(store.open(empty))).toHaveLength(0);
  });

  test('a file of 20 MiB written in odd pieces from one buffer has every range exactly', async () => {
    const whole = pattern(20 * MiB + 7);
    const writer = await store.create();
    const piece = Buffer.alloc(999_983);
    for (let at = 0; at < whole.length; at += piece.length) {
      // The buffer is reused, to prove that the store keeps no reference to it.
      const length = whole.copy(piece, 0, at);
      await writer.write(piece.subarray(0, length));
    }
    const ref = await writer.commit();
    expect((await collect(store.open(ref))).equals(whole)).toBe(true);
    const edge = fc.oneof(
      fc.integer({ min: 0, max: whole.length }),
      fc.constantFrom(0, 1, 8 * MiB - 1, 8 * MiB, 8 * MiB + 1, 16 * MiB, whole.length),
    );
    await fc.assert(
      fc.asyncProperty(edge, edge, async (a, b) => {
        const start = Math.min(a, b);
        const end = Math.max(a, b);
        const part = whole.subarray(start, end);
        expect((await store.readRange(ref, start, end)).equals(part)).toBe(true);
        if (start === end) return;
        expect((await collect(store.open(ref, { start, end }))).equals(part)).toBe(true);
      }),
      { numRuns: runs(12) },
    );
  });

  test('a file does not exist before its commit, nor after it is discarded', async () => {
    const before = await site.files();
    const small = await store.create();
    await small.write(Buffer.from('x'));
    const large = await store.create();
    await large.write(pattern(17 * MiB));
    expect((await site.files()).filter((name) => /\/[0-9a-f-]{36}$/.test(name)).length).toBeLessThanOrEqual(
      before.length + 1,
    );
    for (const writer of [small, large]) {
      await writer.discard();
      await writer.discard();
      await expect(writer.write(Buffer.from('x'))).rejects.toThrow('already discarded');
    }
    expect(await site.files()).toEqual(before);
    const third = await store.create();
    const ref = await third.commit();
    await third.discard();
    expect(await store.readRange(ref, 0, 0)).toHaveLength(0);
    expect((await site.files()).length).toBe(before.length + 1);
  });

  test('a missing or short file is reported, and a second removal is not an error', async () => {
    const ref = await save(store, Buffer.from('hello'));
    await expect(store.readRange(ref, 3, 6)).rejects.toThrow(Fault);
    await expect(store.readRange(ref, 5, 6)).rejects.toThrow(Fault);
    await store.remove(ref);
    await store.remove(ref);
    await expect(store.readRange(ref, 0, 1)).rejects.toThrow(MissingFileError);
    await expect(collect(store.open(ref))).rejects.toThrow(MissingFileError);
  });

  test('a folder is removed with its committed and unfinished files, and with nothing beside it', async () => {
    const folder = (part: string) => `exports/01a1f879-8845-7223-9ca4-ceafb3823817${part}` as FileFolder;
    const before = (await site.files()).length;
    const other = await save(store, Buffer.from('kept'), folder('/1'));
    // These are more files than the store can remove in one step.
    for (let i = 0; i < 12; i++) await save(store, Buffer.from('gone'), folder('/2'));
    const beside = await save(store, Buffer.from('beside'), folder('/22'));
    const unfinished = await store.create(folder('/2'));
    await unfinished.write(pattern(9 * MiB));
    await waitFor('it to be begun', async () => (await site.files()).length === before + 15);
    await store.removeFolder(folder('/2'));
    await store.removeFolder(folder('/3'));
    await unfinished.write(pattern(9 * MiB)).catch(() => undefined);
    await expect(unfinished.commit()).rejects.toThrow(MissingFileError);
    await unfinished.discard();
    expect((await site.files()).length).toBe(before + 2);
    expect((await collect(store.open(other))).toString()).toBe('kept');
    expect((await collect(store.open(beside))).toString()).toBe('beside');
    await store.removeFolder(folder(''));
    expect((await site.files()).length).toBe(before);
  });

  test('files that are written many at a time do not mix', async () => {
    const written = await Promise.all(
      Array.from({ length: 4 }, async (_, seed) => {
        const bytes = pattern(seed % 2 === 0 ? 100_000 : 9 * MiB, seed);
        return { ref: await save(store, bytes), bytes };
      }),
    );
    expect(new Set(written.map(({ ref }) => ref)).size).toBe(4);
    for (const { ref, bytes } of written) expect((await collect(store.open(ref))).equals(bytes)).toBe(true);
  });

  test('names that the store did not make are refused', async () => {
    for (const ref of ['../secret', '/etc/passwd', 'tmp/x', '2026-01-01/../../x', '']) {
      expect(() => store.open(ref as FileRef)).toThrow(Fault);
    }
    const part = 'exports/01a1f879-8845-7223-9ca4-ceafb3823817/1/2';
    for (const name of ['../secret', 'tmp/x', '', 'exports', 'exports/..', 'tmp', part, '2026-11-20'])
      for (const use of [store.removeFolder, store.create])
        await expect((async () => use(name as FileFolder))()).rejects.toThrow(Fault);
  });

  test('a store that works passes its check', async () => {
    await store.check();
  });
});

describe('a bucket', () => {
  let site: Site;
  let store: FileStore;
  beforeAll(async () => {
    site = await openBucket();
    store = site.store;
  });
  afterAll(() => site.close());
  beforeEach(() => {
    (s3.requests as string[]).length = 0;
  });

  test('a bucket has its files below the prefix, under names of the store', async () => {
    const ref = await save(store, Buffer.from('x'));
    expect(await s3.objects()).toEqual([`some/prefix/${ref}`]);
  });

  test('a bucket takes a small file in one request, and a larger one in parts', async () => {
    await save(store, pattern(MiB));
    expect(s3.requests).toEqual([expect.stringMatching(/^PUT [^?]+(\?x-id=PutObject)?$/)]);
    await save(store, pattern(16 * MiB + 1));
    const parts = s3.requests.filter((request) => request.includes('partNumber=')).length;
    expect([parts, s3.requests.length]).toEqual([3, 1 + 1 + 3 + 1]);
  });

  test('a bucket is written and read although connections break', async () => {
    s3.breakNext(/^PUT .*partNumber=1/, 'before');
    s3.breakNext(/^PUT .*partNumber=2/, 'after');
    s3.breakNext(/^POST .*uploadId=/, 'after');
    const whole = pattern(17 * MiB);
    const ref = await save(store, whole);
    expect(await s3.uploads()).toEqual([]);
    s3.breakNext(/^GET /, 'half-way');
    expect((await collect(store.open(ref))).equals(whole)).toBe(true);
    const reads = s3.requests.filter((request) => request.startsWith('GET ')).length;
    expect(reads).toBe(2);
    s3.breakNext(/^GET /, 'half-way');
    s3.breakNext(/^GET /, 'before');
    expect((await store.readRange(ref, MiB, 5 * MiB)).equals(whole.subarray(MiB, 5 * MiB))).toBe(true);
  });

  test('a stalled answer of a bucket is requested again, and given up if it always stalls', async () => {
    const ref = await save(store, pattern(MiB));
    const impatient = createS3Store(s3Location(), { maxFileBytes: 1, stallMs: 200 });
    s3.breakNext(/^GET /, 'stalled');
    expect((await impatient.readRange(ref, 1, MiB)).equals(pattern(MiB).subarray(1))).toBe(true);
    for (let i = 0; i < 50; i++) s3.breakNext(/^GET /, 'stalled');
    const error = await impatient.readRange(ref, 0, 3).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(TransientError);
    s3.mend();
  });

  // proves: reset-connection
  test('a bucket that refuses an unread part and resets the connection ends that request, not the process', async () => {
    const uncaught: unknown[] = [];
    const note = (error: unknown) => void uncaught.push(error);
    const ours: Socket[] = [];
    const keep = (message: unknown) => void ours.push((message as { readonly socket: Socket }).socket);
    const theirs: Socket[] = [];
    const body = '<Error><Code>AccessDenied</Code></Error>';
    const server = createServer((socket) => {
      theirs.push(socket.on('error', () => undefined));
      // Reads only the head of the request, so that the client cannot send the rest of the body.
      socket.once('data', () => {
        socket.pause();
        socket.write(`HTTP/1.1 403 Forbidden\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = new URL(s3.url);
    url.searchParams.set('endpoint', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const refusing = openStore({ ...s3.variables, STORAGE_URL: url.href });
    process.on('uncaughtExceptionMonitor', note);
    subscribe('net.client.socket', keep);
    try {
      await expect(save(refusing, pattern(8 * MiB - 1))).rejects.toThrow(/access to bucket files is denied/);
      // Stops reading, so that a write detects the reset. Otherwise, a read might detect it first.
      for (const socket of ours) (socket as unknown as Handled)._handle.readStop();
      for (const socket of theirs) socket.resetAndDestroy();
      await waitFor('the connections to end', () => ours.every(({ closed }) => closed));
      expect(uncaught).toEqual([]);
    } finally {
      unsubscribe('net.client.socket', keep);
      process.off('uncaughtExceptionMonitor', note);
      for (const socket of theirs) socket.destroy();
      server.close();
    }
  });

  test('a bucket is swept of abandoned uploads', async () => {
    const location = s3Location();
    const begin = async () => (await store.create()).write(pattern(9 * MiB));
    await begin();
    await waitFor('the upload to be begun', async () => (await s3.uploads()).length === 1);
    // `sweepTemporary` keeps uploads younger than `uploadLifeMs`, even if it is called with a lower
    // age.
    const careful = createS3Store(location, { maxFileBytes: 1 });
    expect(await careful.sweepTemporary(0)).toBe(0);
    const strict = createS3Store(location, { maxFileBytes: 1, uploadLifeMs: 0 });
    expect(await strict.sweepTemporary(60_000)).toBe(0);
    expect(await strict.sweepTemporary(0)).toBe(1);
    expect(await s3.uploads()).toEqual([]);
  });

  test('a bucket gives links that S3 answers with the name and type of the file', async () => {
    const ref = await save(store, Buffer.from('a,b\n'));
    const expireAt = new Date(Date.now() + 3_600_000);
    const link = { filename: 'users.csv', contentType: 'text/csv; charset=utf-8', expireAt };
    const url = (await store.presign?.(ref, link)) ?? '';
    const answer = await fetch(url);
    expect([answer.status, await answer.text()]).toEqual([200, 'a,b\n']);
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="users.csv"');
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const month = new Date(Date.now() + 30 * 24 * 3_600_000);
    const long = new URL((await store.presign?.(ref, { ...link, expireAt: month })) ?? '');
    expect(long.searchParams.get('X-Amz-Expires')).toBe('604800');
    expect(openStore({ ...s3.variables, STORAGE_PRESIGN: 'false' }).presign).toBeUndefined();
  });

  test('a bucket that is missing, refuses access or is away is reported with advice, and without the key', async () => {
    const url = new URL(s3.url);
    const wrong = (changes: Record<string, string>) => openStore({ ...s3.variables, ...changes });
    const none = wrong({ STORAGE_URL: s3.url.replace('//files', '//others') });
    const refused = wrong({ AWS_ACCESS_KEY_ID: 'another', AWS_SECRET_ACCESS_KEY: 'another-secret' });
    url.searchParams.set('endpoint', await deadEndpoint());
    const away = wrong({ STORAGE_URL: url.href });
    for (const [broken, words] of [
      [none, /there is no bucket others .*create it, or correct STORAGE_URL/],
      [refused, /credentials are wrong .*AWS_SECRET_ACCESS_KEY/],
      [away, /cannot be reached or does not answer/],
    ] as const) {
      const failures = await Promise.all([
        broken.check().catch((error: unknown) => error),
        save(broken, Buffer.from('x')).catch((error: unknown) => error),
        save(broken, pattern(9 * MiB)).catch((error: unknown) => error),
      ]);
      for (const failure of failures) {
        expect(failure).toBeInstanceOf(TransientError);
        expect((failure as Error).message).toMatch(words);
        expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain('another-secret');
      }
    }
    s3.breakNext(/^PUT /, 'denied');
    await expect(save(store, Buffer.from('x'))).rejects.toThrow(
      /access to bucket files is denied; allow what/,
    );
  });
});
