import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, type Running, runCli, startService, temporaryFolder } from './cli.ts';
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

const exportsPath = '/api/v1/analytics/exports';

async function requestExport({ url, key }: Service): Promise<string> {
  const response = await call(url, key, exportsPath, post({ event_type: ['users'] }));
  expect(response.status, await response.clone().text()).toBeLessThan(300);
  return ((await response.json()) as { job_id: string }).job_id;
}

test('a backup of a service at work is one moment: restored, its counts, keys and downloads are there, and the load under way completes', {
  timeout: 180_000,
}, async () => {
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
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('is there already') });
  const piped = await runCli(['backup', '-'], { env: { DATA_DIR: dataDir } });
  expect(piped.code).toBe(0);
  expect(await readdir(folder)).toEqual(['backup.tar.gz']);
  expect(await jobEnded(url, key, underWay)).toMatchObject({ status: 'completed' });
  expect(await jobEnded(url, key, running)).toMatchObject({ status: 'completed' });
  // Over a database that is there, and is in use, nothing is restored.
  const refused = await runCli(['restore', archive], { env: { DATA_DIR: dataDir } });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('--replace') });
  const inUse = await runCli(['restore', archive, '--replace', '-q'], { env: { DATA_DIR: dataDir } });
  expect(inUse).toMatchObject({ code: 1, stderr: expect.stringContaining('runs on') });
  const [now] = await query<{ users: number; events: number }>(dataDir, holds);
  first.process.signal('SIGTERM');
  await first.process.finished;

  const whole = await runCli(['backup', '--verify', archive, '--json']);
  expect(JSON.parse(whole.stdout)).toMatchObject({ file: archive, files_included: true });
  const bytes = await readFile(archive);
  const damaged = Buffer.from(bytes);
  damaged[bytes.length >> 1] = (damaged[bytes.length >> 1] ?? 0) ^ 0xff;
  await writeFile(join(folder, 'damaged.tar.gz'), damaged);
  const empty = join(folder, 'restored');
  const notWhole = await runCli(['restore', join(folder, 'damaged.tar.gz')], { env: { DATA_DIR: empty } });
  expect(notWhole).toMatchObject({ code: 1, stderr: expect.stringContaining('damaged') });
  await expect(readdir(empty)).rejects.toThrow('ENOENT');

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
