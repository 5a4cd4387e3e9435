import { execFileSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ArchiveWriter, archiveFormat, type Item, readArchive } from '../../../src/backup/archive.ts';
import { tarEntry } from '../../../src/backup/tar.ts';
import { DamagedFile } from '../../../src/domain/errors.ts';
import { BACKUP_PART_BYTES } from '../../../src/domain/limits.ts';
import { waitFor } from '../../support/wait-for.ts';

let folder: string;
let path: string;

const about = {
  format: archiveFormat,
  sluice: '1.2.3',
  created_at: '2026-11-23T03:00:00.000Z',
  files: 'included',
  database: { serverVersion: '18.4', at: '', cursor: '1:1:', migrations: [], tables: [], sequences: [] },
};
const ref = 'exports/01a205e1-d974-7893-8c5a-00061613fe6b/1/01a205e1-d974-7893-8c5a-00061613fe6c';
const large = Buffer.alloc(2 * BACKUP_PART_BYTES + 5, 'a row\n');
const contents: readonly (readonly [Item, readonly Buffer[]])[] = [
  [{ kind: 'files', name: ref }, [Buffer.from('some bytes')]],
  [{ kind: 'files', name: '2026-11-23/empty' }, []],
  [{ kind: 'tables', name: 'users' }, [large.subarray(0, 7), large.subarray(7)]],
  [{ kind: 'tables', name: 'grüße' }, []],
];

async function write(to: string): Promise<void> {
  const archive = await ArchiveWriter.begin(createWriteStream(to), about);
  for (const [item, chunks] of contents) {
    async function* all() {
      yield* chunks;
    }
    await archive.add(item, all());
  }
  await archive.end();
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-archive-'));
  path = join(folder, 'backup.tar.gz');
  await write(path);
});
afterAll(() => rm(folder, { recursive: true }));

/** Files of the folder that this process has open. */
async function openFiles(): Promise<string[]> {
  const numbers = await readdir('/proc/self/fd');
  const paths = await Promise.all(numbers.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
  return paths.filter((name) => name.startsWith(folder));
}

/** Its error, if it is not whole. */
async function outcome(bytes: Buffer): Promise<unknown> {
  const changed = join(folder, 'changed.tar.gz');
  await writeFile(changed, bytes);
  return readArchive(changed, {}).then(
    () => null,
    (error: unknown) => error,
  );
}

describe('the archive of a backup', () => {
  test.runIf(process.platform === 'linux')(
    'is closed when whoever reads it fails in the middle',
    async () => {
      const reading = readArchive(path, {
        item: () => Promise.reject(new Error('no room for it')),
      });
      await expect(reading).rejects.toThrow('no room for it');
      await waitFor('the file to be closed', async () => (await openFiles()).length === 0);
    },
  );

  test('gives back each file and table, whatever its length, and counts rows and bytes', async () => {
    const found: [Item, Buffer][] = [];
    const { manifest } = await readArchive(path, {
      async item(item, bytes) {
        const chunks: Buffer[] = [];
        for await (const chunk of bytes) chunks.push(chunk);
        found.push([item, Buffer.concat(chunks)]);
      },
    });
    expect(found.map(([item]) => item)).toEqual(contents.map(([item]) => item));
    for (const [index, [, chunks]] of contents.entries())
      expect(found[index]?.[1].equals(Buffer.concat([...chunks]))).toBe(true);
    expect(manifest.files).toMatchObject({ count: 2, bytes: 10 });
    expect(manifest.tables).toMatchObject([
      { name: 'users', rows: large.toString().split('\n').length - 1, bytes: large.length },
      { name: 'grüße', rows: 0, bytes: 0 },
    ]);
  });

  test('a target that fails while rows are awaited fails the archive, and nothing else', async () => {
    let fail: ((error: Error) => void) | null = null;
    const target = new Writable({
      highWaterMark: large.length,
      write(_chunk, _encoding, done) {
        fail = done;
      },
    });
    const archive = await ArchiveWriter.begin(target, about);
    async function* rows() {
      yield large;
      fail?.(new Error('no room'));
      await new Promise((resolve) => target.on('close', resolve));
      yield large;
    }
    await expect(archive.add({ kind: 'tables', name: 'users' }, rows())).rejects.toThrow('no room');
  });

  test('is a tar of parts that tar takes apart', () => {
    const names = execFileSync('tar', ['-tzf', path], { encoding: 'utf8' }).trim().split('\n');
    expect(names[0]).toBe('backup.json');
    expect(names.at(-1)).toBe('manifest.json');
    expect(names).toContain(`files/${ref}/000001`);
    const rows = execFileSync('tar', ['-xzOf', path, '--wildcards', 'tables/users/*'], {
      maxBuffer: 1 << 26,
    });
    expect(rows.equals(large)).toBe(true);
  });

  // proves: backup-damage
  test('with a byte of it changed, or its end missing, it is found to be damaged, or says what it said', async () => {
    const bytes = await readFile(path);
    const tar = gunzipSync(bytes);
    const places = fc.oneof(
      // Behind the gzip header, of which nobody reads the time and the system.
      fc.tuple(fc.constant('flip'), fc.integer({ min: 10, max: bytes.length - 1 })),
      fc.tuple(fc.constant('cut'), fc.integer({ min: 0, max: bytes.length - 1 })),
    );
    await fc.assert(
      fc.asyncProperty(places, fc.integer({ min: 1, max: 255 }), async ([what, at], bits) => {
        const changed = what === 'cut' ? bytes.subarray(0, at) : Buffer.from(bytes);
        if (what === 'flip') changed[at] = (changed[at] ?? 0) ^ bits;
        const found = await outcome(changed);
        // Some bits mean nothing, or the same: what comes out is what went in.
        if (found === null) expect(gunzipSync(changed).equals(tar)).toBe(true);
        else expect(found).toBeInstanceOf(DamagedFile);
      }),
      { numRuns: 40 },
    );
  });

  // proves: backup-damage
  test('what was changed and compressed anew, or stands behind its end, is found by its manifest', async () => {
    const bytes = await readFile(path);
    const tar = gunzipSync(bytes);
    const rowAt = tar.indexOf('a row\n', 1_000_000);
    const changed = Buffer.from(tar);
    changed.write('A', rowAt);
    expect(await outcome(gzipSync(changed))).toMatchObject({
      message: 'the table users is not as it was written',
    });
    const file = Buffer.from(tar);
    file.write('S', tar.indexOf('some bytes'));
    expect(await outcome(gzipSync(file))).toMatchObject({
      message: expect.stringContaining('not as they were'),
    });
    expect(await outcome(Buffer.concat([bytes, Buffer.from('x')]))).toBeInstanceOf(DamagedFile);
    expect(await outcome(Buffer.concat([bytes, bytes]))).toBeInstanceOf(DamagedFile);
    expect(await outcome(gzipSync(tar.subarray(0, tar.lastIndexOf('manifest.json'))))).toBeInstanceOf(
      DamagedFile,
    );
    expect(await outcome(gzipSync(Buffer.from('user_id,email\n')))).toBeInstanceOf(DamagedFile);
  });

  test('one of a later format is refused, and the version named that reads it', async () => {
    const [header, content, padding] = tarEntry(
      { name: 'backup.json', content: Buffer.from(JSON.stringify({ ...about, format: archiveFormat + 1 })) },
      0,
    );
    const later = gzipSync(Buffer.concat([header, content, padding].filter((part) => part !== undefined)));
    expect(await outcome(later)).toMatchObject({ message: expect.stringContaining('sluice 1.2.3 or newer') });
  });
});
