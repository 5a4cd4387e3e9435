import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleanUpAfter } from '../support/cleanups.ts';
import { mountSmallDisk } from '../support/tmpfs.ts';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, type Running, runCli, startCli, startService, temporaryFolder } from './cli.ts';
import { call, jobEnded, query, upload, usersCsv } from './service.ts';

interface Service {
  readonly process: Running;
  readonly url: string;
  readonly key: string;
}

/** `key`: one that was made before; else the first one. */
async function start(dataDir: string, key?: string): Promise<Service> {
  const process = await startService(dataDir);
  return { process, url: process.url, key: key ?? process.key ?? '' };
}

const holds = `
  select
    (select count(*)::int from sluice.users) as users,
    (select count(*)::int from sluice.users where metadata ->> 'version' = 'two') as second,
    (select count(*)::int from sluice.events) as events`;

const post = (body: object): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

const mebibyte = 1024 * 1024;

/** A folder on a disk that has little room until it grows; where none can be mounted, an ordinary one. */
async function roomFor(bytes: number) {
  const disk = await mountSmallDisk(bytes);
  if (typeof disk === 'string') return { path: await temporaryFolder(), grow: null };
  cleanUpAfter('test', disk.remove);
  return disk;
}

/** Ends a command by SIGKILL as soon as it has written the file. */
async function killAt(file: () => Promise<unknown>, args: readonly string[], dataDir: string): Promise<void> {
  const running = startCli(args, { env: { DATA_DIR: dataDir } });
  await waitFor(`${args[0]} to write`, () => file().then(Boolean, () => false), { everyMs: 1 });
  running.signal('SIGKILL');
  expect(await running.finished).toMatchObject({ code: 'SIGKILL' });
}

/** On a disk without room, then killed: what that leaves is taken for no backup, and goes with a later one. */
async function failToBackUp(dataDir: string): Promise<void> {
  const { path: folder, grow } = await roomFor(mebibyte / 16);
  const env = { DATA_DIR: dataDir };
  if (grow !== null) {
    const full = await runCli(['backup', folder], { env });
    expect(full).toMatchObject({ code: 1, stderr: expect.stringMatching(/is full.*Make room/) });
    expect(await readdir(folder)).toEqual([]);
    await grow(64 * mebibyte);
  }
  const killed = join(folder, 'killed.tar.gz');
  await killAt(async () => (await readdir(folder)).length > 0, ['backup', killed], dataDir);
  const [left = '', ...others] = (await readdir(folder)).map((name) => join(folder, name));
  expect([others, left]).toEqual([[], expect.stringMatching(/\/\.killed\.tar\.gz\.[0-9a-f-]{36}\.partial$/)]);
  const verified = await runCli(['backup', '--verify', left]);
  expect(verified).toMatchObject({ code: 1, stderr: expect.stringContaining('damaged, or no backup') });
  const longAgo = new Date(Date.now() - 2 * 24 * 60 * 60 * 1000);
  await utimes(left, longAgo, longAgo);
  expect(await runCli(['backup', killed], { env })).toMatchObject({ code: 0 });
  expect(await readdir(folder)).toEqual(['killed.tar.gz']);
}

/** Killed at two moments and on a disk without room; a service refuses to start on what that leaves. */
async function failToRestore(archive: string): Promise<string> {
  const { path, grow } = await roomFor(54 * mebibyte);
  const dataDir = join(path, 'restored');
  const env = { DATA_DIR: dataDir };
  const written = (name: string) => () => stat(join(dataDir, name));
  for (const [moment, command] of [
    ['postgres.restoring.json', ['start']],
    ['postgres/server.json', ['jobs', 'list']],
  ] as const) {
    await killAt(written(moment), ['restore', archive], dataDir);
    const refused = await runCli(command, { env });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^sluice: A restore .*again/) });
  }
  if (grow !== null) {
    const full = await runCli(['restore', archive, '-q'], { env });
    expect(full).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^sluice: The disk of .*restored is full.*Make room/s),
    });
    expect(await readdir(dataDir)).not.toContain('postgres');
    await grow(1024 * mebibyte);
  }
  return dataDir;
}

const exportsPath = '/api/v1/analytics/exports';

async function requestExport({ url, key }: Service): Promise<string> {
  const response = await call(url, key, exportsPath, post({ event_type: ['users'] }));
  expect(response.status, await response.clone().text()).toBeLessThan(300);
  return ((await response.json()) as { job_id: string }).job_id;
}

// proves: backup-moment, backup-atomic
test('a backup of a service at work is one moment: restored, its counts, keys and downloads are there, and the load under way completes', async () => {
  const [dataDir, folder] = [await preparedDataDir(), await temporaryFolder()];
  const first = await start(dataDir);
  const { url, key } = first;
  const { job_id: done } = await upload(url, key, usersCsv(3_000));
  expect(await jobEnded(url, key, done)).toMatchObject({ status: 'completed' });
  const exported = await requestExport(first);
  expect(await jobEnded(url, key, exported)).toMatchObject({ status: 'completed' });

  // A load, single records and an export are under way while the backup is made.
  const { job_id: underWay } = await upload(url, key, usersCsv(30_000, 'two'), 'more.csv');
  const sending = new AbortController();
  let acknowledged = 0;
  const sender = (async () => {
    for (let n = 0; !sending.signal.aborted; n++) {
      const body = post({ user_id: `e${n}`, event_name: 'opened', event_id: `id-${n}` });
      const response = await call(url, key, '/v1/track', body);
      if (response.status === 202) acknowledged++;
    }
  })();
  const running = await requestExport(first);
  await waitFor('records to arrive', () => acknowledged > 20);
  const before = acknowledged;
  const archive = join(folder, 'backup.tar.gz');
  const made = await runCli(['backup', archive, '--json'], { env: { DATA_DIR: dataDir } });
  sending.abort();
  await sender;
  expect(made).toMatchObject({ code: 0 });
  expect(JSON.parse(made.stdout)).toMatchObject({ file: archive, missing: 0, lost: [], left_out: [] });
  const again = await runCli(['backup', archive], { env: { DATA_DIR: dataDir } });
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('exists already') });
  const piped = await runCli(['backup', '-'], { env: { DATA_DIR: dataDir } });
  expect(piped.code).toBe(0);
  expect(await readdir(folder)).toEqual(['backup.tar.gz']);
  expect(await jobEnded(url, key, underWay)).toMatchObject({ status: 'completed' });
  expect(await jobEnded(url, key, running)).toMatchObject({ status: 'completed' });
  await failToBackUp(dataDir);
  // Over a database that is there, and is in use, nothing is restored.
  const refused = await runCli(['restore', archive], { env: { DATA_DIR: dataDir } });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('--replace') });
  const inUse = await runCli(['restore', archive, '--replace', '-q'], { env: { DATA_DIR: dataDir } });
  expect(inUse).toMatchObject({ code: 1, stderr: expect.stringContaining('runs on') });
  expect((await readdir(dataDir)).filter((name) => name.startsWith('postgres'))).toEqual(['postgres']);
  const [now] = await query<{ users: number; events: number }>(dataDir, holds);
  first.process.signal('SIGTERM');
  await first.process.finished;

  const whole = await runCli(['backup', '--verify', archive, '--json']);
  expect(JSON.parse(whole.stdout)).toMatchObject({ file: archive, files_included: true });
  const bytes = await readFile(archive);
  const damaged = Buffer.from(bytes);
  damaged[bytes.length >> 1] = (damaged[bytes.length >> 1] ?? 0) ^ 0xff;
  await writeFile(join(folder, 'damaged.tar.gz'), damaged);
  const untouched = join(folder, 'untouched');
  const aFolder = await runCli(['restore', folder, '--data-dir', untouched]);
  expect(aFolder).toMatchObject({ code: 2, stderr: expect.stringContaining('is a folder. Name the backup') });
  const notWhole = await runCli(['restore', join(folder, 'damaged.tar.gz'), '--data-dir', untouched]);
  expect(notWhole).toMatchObject({ code: 1, stderr: expect.stringContaining('damaged') });
  await expect(readdir(untouched)).rejects.toThrow('ENOENT');

  const empty = await failToRestore(archive);
  const restored = await runCli(['restore', archive], { env: { DATA_DIR: empty } });
  expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining('Restored') });
  const second = await start(empty, key);
  expect(await jobEnded(second.url, key, underWay)).toMatchObject({
    status: 'completed',
    counts: { read: 30_000, inserted: 27_000, updated: 3_000 },
  });
  expect(await jobEnded(second.url, key, running)).toMatchObject({ status: 'completed' });
  const [holding] = await query<{ users: number; second: number; events: number }>(empty, holds);
  expect(holding).toMatchObject({ users: now?.users, second: 30_000 });
  expect(holding?.events).toBeGreaterThanOrEqual(before);
  expect(holding?.events).toBeLessThanOrEqual(now?.events ?? 0);
  // Downloads: the link of an export that had been complete.
  const shown = await call(second.url, key, `${exportsPath}/jobs/${exported}`);
  const { presigned_urls: links } = (await shown.json()) as {
    readonly presigned_urls: readonly { readonly url: string }[];
  };
  const file = await fetch(links[0]?.url ?? '');
  expect(file.status).toBe(200);
  expect((await file.arrayBuffer()).byteLength).toBeGreaterThan(1_000);
  // New rows get new numbers.
  const { job_id: next } = await upload(second.url, key, usersCsv(10, 'three'), 'next.csv');
  expect(await jobEnded(second.url, key, next)).toMatchObject({
    status: 'completed',
    counts: { updated: 10 },
  });
  second.process.signal('SIGTERM');
  await second.process.finished;

  // Instead of what is there: that is set aside, whole.
  const instead = await runCli(['restore', archive, '--replace', '--json'], { env: { DATA_DIR: empty } });
  expect(instead).toMatchObject({ code: 0 });
  const { aside } = JSON.parse(instead.stdout) as { aside: string };
  expect(await readdir(aside)).toContain('data');
  const replaced = await runCli(['jobs', 'list', '--json'], { env: { DATA_DIR: empty } });
  expect(replaced.stdout).not.toContain(next);
  expect(replaced.stdout).toContain(underWay);
});

test('a backup that finds none of the stored files fails and leaves nothing; one that misses some names them', async () => {
  const [dataDir, folder] = [await preparedDataDir(), await temporaryFolder()];
  const env = { DATA_DIR: dataDir };
  for (const version of ['one', 'two']) {
    const file = join(folder, `${version}.csv`);
    await writeFile(file, usersCsv(10, version));
    expect(await runCli(['import', '-q', file], { env })).toMatchObject({ code: 0 });
  }
  const elsewhere = join(folder, 'elsewhere');
  await mkdir(elsewhere);
  const archive = join(folder, 'backup.tar.gz');
  const none = await runCli(['backup', archive], { env: { ...env, STORAGE_URL: elsewhere } });
  const sentence = `None of the 2 stored files that the database lists is in ${elsewhere}, so nothing was backed up.`;
  expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining(sentence) });
  expect((await readdir(folder)).sort()).toEqual(['elsewhere', 'one.csv', 'two.csv']);

  const stored = await readdir(join(dataDir, 'files'), { recursive: true, withFileTypes: true });
  const [lost] = stored.filter((entry) => entry.isFile());
  await rm(join(lost?.parentPath ?? '', lost?.name ?? ''));
  const some = await runCli(['backup', archive], { env });
  expect(some).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(', 1 file '),
    stderr: expect.stringContaining(`${lost?.name} is missing though the database lists it`),
  });
});
