import { mkdir, mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Fault, TransientError } from '../../../src/base/errors.ts';
import type { FileRef, FileStore } from '../../../src/files/file-store.ts';
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
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

// This file tests only folders. test/integration/file-store.test.ts tests the behaviour that
// folders and buckets share.
it('a shortened file is reported, even in the middle of a stream', async () => {
  const ref = await save('twelve bytes');
  expect((await collect(store.open(ref, { start: 7, end: 12 }))).toString()).toBe('bytes');
  await truncate(path.join(directory, 'files', ref), 9);
  await expect(store.readRange(ref, 7, 12)).rejects.toThrow('ends at byte 9, not at 12');
  await expect(collect(store.open(ref, { start: 7, end: 12 }))).rejects.toThrow(Fault);
});

it('a directory that cannot be written is a transient error', async () => {
  await writeFile(path.join(directory, 'files'), 'in the way');
  await expect(store.create()).rejects.toThrow(TransientError);
});

it('files and folders are closed to other users', async () => {
  const ref = await save('private');
  const modeOf = async (name: string) => (await stat(path.join(directory, 'files', name))).mode & 0o777;
  expect(await modeOf(ref)).toBe(0o600);
  expect(await modeOf(path.dirname(ref))).toBe(0o700);
  expect(await modeOf('tmp')).toBe(0o700);
  expect(await modeOf('.')).toBe(0o700);
});

it('a sweep removes abandoned temporary files, and no others', async () => {
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

it('a sweep leaves a file that a living process has open, even without writes', async () => {
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

it('a commit without its directory fails, and its discard removes the file', async () => {
  const writer = await store.create();
  const day = new Date().toISOString().slice(0, 10);
  await mkdir(path.join(directory, 'files'), { recursive: true });
  await writeFile(path.join(directory, 'files', day), '');
  await expect(writer.commit()).rejects.toThrow(TransientError);
  await writer.discard();
  expect(await files()).toEqual([day]);
});
