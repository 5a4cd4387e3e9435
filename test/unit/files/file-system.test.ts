import { mkdir, mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Fault, TransientError } from '../../../src/domain/errors.ts';
import {
  type FileFolder,
  type FileRef,
  type FileStore,
  MissingFileError,
} from '../../../src/files/file-store.ts';
import { createFileSystemStore } from '../../../src/files/file-system.ts';
import { waitFor } from '../../support/wait-for.ts';
import { collect } from '../formats/in-pieces.ts';

let directory: string;
let store: FileStore;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'sluice-files-'));
  store = createFileSystemStore(path.join(directory, 'files'));
});

afterEach(() => rm(directory, { recursive: true }));

async function save(text: string): Promise<FileRef> {
  const writer = await store.create();
  await writer.write(Buffer.from(text));
  return writer.commit();
}

async function files(): Promise<string[]> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

describe('file system store', () => {
  it('gives back what was written, whole and in ranges', async () => {
    const ref = await save('hello world');
    expect((await collect(store.open(ref))).toString()).toBe('hello world');
    expect((await store.readRange(ref, 6, 11)).toString()).toBe('world');
    expect(await store.readRange(ref, 3, 3)).toHaveLength(0);
  });

  it('removes a folder with all that is in it, begun or committed, and nothing beside it', async () => {
    const folder = (part: string) => `exports/01a1f879-8845-7223-9ca4-ceafb3823817${part}` as FileFolder;
    const put = async (part: string) => {
      const writer = await store.create(folder(part));
      await writer.write(Buffer.from(part));
      return writer.commit();
    };
    const kept = await put('/1');
    await put('/2');
    const begun = await store.create(folder('/2'));
    await begun.write(Buffer.from('half'));
    await store.removeFolder(folder('/2'));
    await store.removeFolder(folder('/3'));
    await begun.discard();
    expect(await files()).toHaveLength(1);
    expect((await collect(store.open(kept))).toString()).toBe('/1');
    await store.removeFolder(folder(''));
    expect(await files()).toEqual([]);
    for (const name of ['exports', 'exports/..', 'tmp', folder('/1/2'), '2026-11-20'] as FileFolder[]) {
      await expect(store.removeFolder(name)).rejects.toThrow(Fault);
      await expect(store.create(name)).rejects.toThrow(Fault);
    }
  });

  it('shows a file only once it is committed', async () => {
    const writer = await store.create();
    await writer.write(Buffer.from('half'));
    const [name] = await files();
    const day = new Date().toISOString().slice(0, 10);
    await expect(store.readRange(`${day}/${name}` as FileRef, 0, 1)).rejects.toThrow(MissingFileError);
    await writer.discard();
  });

  it('leaves nothing behind after a discard, and keeps the file after a commit', async () => {
    const writer = await store.create();
    await writer.write(Buffer.alloc(40 << 20));
    await writer.discard();
    await writer.discard();
    expect(await files()).toEqual([]);
    await expect(writer.write(Buffer.from('x'))).rejects.toThrow('already discarded');

    const kept = await store.create();
    await kept.commit();
    await kept.discard();
    expect(await files()).toHaveLength(1);
  });

  it('says that a file is gone, or shorter than it should be', async () => {
    const ref = await save('hello');
    await expect(store.readRange(ref, 3, 6)).rejects.toThrow(Fault);
    await truncate(path.join(directory, 'files', ref), 2);
    await expect(store.readRange(ref, 0, 5)).rejects.toThrow('ends at byte 2, not at 5');
    await store.remove(ref);
    await store.remove(ref);
    await expect(store.readRange(ref, 0, 1)).rejects.toThrow(MissingFileError);
    await expect(collect(store.open(ref))).rejects.toThrow(MissingFileError);
  });

  it('fails a stream whose file has become too short for it', async () => {
    const ref = await save('twelve bytes');
    expect((await collect(store.open(ref, { start: 7, end: 12 }))).toString()).toBe('bytes');
    await truncate(path.join(directory, 'files', ref), 9);
    await expect(collect(store.open(ref, { start: 7, end: 12 }))).rejects.toThrow(Fault);
  });

  it('names files only by refs that it made', () => {
    for (const ref of ['../secret', '/etc/passwd', 'tmp/x', '2026-01-01/../../x', '']) {
      expect(() => store.open(ref as FileRef)).toThrow(Fault);
    }
  });

  it('takes a directory that cannot be written for something that passes', async () => {
    await writeFile(path.join(directory, 'files'), 'in the way');
    await expect(store.create()).rejects.toThrow(TransientError);
  });

  it('sweeps temporary files that nobody writes to any more, and no others', async () => {
    expect(await store.sweepTemporary(0)).toBe(0);
    const ref = await save('kept');
    const live = await store.create();
    const stale = path.join(directory, 'files', 'tmp', 'stale');
    await writeFile(stale, '');
    const hourAgo = new Date(Date.now() - 3_600_000);
    await utimes(stale, hourAgo, hourAgo);
    expect(await store.sweepTemporary(60_000)).toBe(1);
    await live.write(Buffer.from('x'));
    await live.commit();
    expect((await store.readRange(ref, 0, 4)).toString()).toBe('kept');
  });

  it('never sweeps a file that a living process has open, however long nothing is written to it', async () => {
    const touching = createFileSystemStore(path.join(directory, 'files'), 10);
    const writer = await touching.create();
    const [name = ''] = await files();
    const draft = path.join(directory, 'files', 'tmp', name);
    const hourAgo = new Date(Date.now() - 3_600_000);
    await utimes(draft, hourAgo, hourAgo);
    await waitFor('the file to be touched', async () => (await stat(draft)).mtime > hourAgo);
    expect(await touching.sweepTemporary(60_000)).toBe(0);
    await writer.write(Buffer.from('late'));
    const ref = await writer.commit();
    expect((await touching.readRange(ref, 0, 4)).toString()).toBe('late');
  });

  it('fails a commit whose directory cannot be made, and leaves nothing after the discard', async () => {
    const writer = await store.create();
    const day = new Date().toISOString().slice(0, 10);
    await mkdir(path.join(directory, 'files'), { recursive: true });
    await writeFile(path.join(directory, 'files', day), '');
    await expect(writer.commit()).rejects.toThrow(TransientError);
    await writer.discard();
    expect(await files()).toEqual([day]);
  });
});
