import { execFile, execFileSync } from 'node:child_process';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { cleanUpAfter } from '../support/cleanups.ts';
import { startSystemPostgres, systemPostgres } from '../support/servers/system-postgres.ts';
import { preparedDataDir, startService } from './cli.ts';
import { shellFolder } from './pages.ts';
import { call, jobEnded, upload, usersCsv } from './service.ts';

const dumpMajor =
  systemPostgres === undefined
    ? 0
    : Number(
        /(\d+)/.exec(execFileSync(join(systemPostgres, 'pg_dump'), ['--version'], { encoding: 'utf8' }))?.[1],
      );
const embeddedMajor = 18;

async function commandsOf(heading: string): Promise<string> {
  const page = await readFile(resolve(import.meta.dirname, '../../docs/moving.md'), 'utf8');
  const section = page.split(`### ${heading}\n`)[1] ?? '';
  const block = /^```sh\n(.*?)^```$/ms.exec(section)?.[1];
  if (block === undefined) throw new Error(`docs/moving.md has no commands under ${heading}`);
  return block;
}

/**
 * Replaces each placeholder in `filled` with its value, and then runs the commands of a section of
 * the page. The commands run in `folder`. If a command fails, throws its output.
 */
async function follow(
  heading: string,
  folder: string,
  filled: readonly (readonly [string, string])[],
): Promise<void> {
  const commands = filled.reduce(
    (text, [shown, real]) => text.replaceAll(shown, real),
    await commandsOf(heading),
  );
  const path = `${join(folder, 'bin')}:${systemPostgres}:${process.env['PATH']}`;
  const options = { cwd: folder, env: { PATH: path, HOME: folder } };
  await promisify(execFile)('bash', ['-eo', 'pipefail', '-c', commands], options);
}

/** Creates a folder in which the commands run. If rsync is not installed, they run cp instead. */
async function workFolder(): Promise<string> {
  const folder = await shellFolder();
  const hasRsync = await promisify(execFile)('rsync', ['--version']).then(
    () => true,
    () => false,
  );
  if (hasRsync) return folder;
  const rsync = join(folder, 'bin', 'rsync');
  await writeFile(rsync, '#!/bin/sh\nmkdir -p "$3" && exec cp -a "$2." "$3"\n');
  await chmod(rsync, 0o755);
  return folder;
}

async function makeServer() {
  const server = await startSystemPostgres();
  cleanUpAfter('test', () => server.stop());
  for (const name of ['first', 'second'])
    await server.query(
      'postgres',
      `create database ${name} template template0 encoding 'UTF8' locale 'C.UTF-8'`,
    );
  return server;
}

const shownUrl = 'postgres://sluice:…@db.example.com/sluice';

async function loadUsers(url: string, key: string, users: number): Promise<string> {
  const { job_id } = await upload(url, key, usersCsv(users));
  expect(await jobEnded(url, key, job_id)).toMatchObject({ status: 'completed' });
  return job_id;
}

async function expectMoved(url: string, key: string, jobId: string): Promise<void> {
  expect(await jobEnded(url, key, jobId)).toMatchObject({ status: 'completed', counts: { read: 400 } });
  expect((await call(url, key, '/v1/users/u1')).status).toBe(200);
  const more = await upload(url, key, usersCsv(20, 'after'));
  expect(await jobEnded(url, key, more.job_id)).toMatchObject({ status: 'completed', counts: { read: 20 } });
}

// proves: move
test.skipIf(systemPostgres === undefined)(
  'the commands of docs/moving.md move a service to another PostgreSQL and into the embedded one, with rows, keys, jobs and files',
  async () => {
    const server = await makeServer();
    const folder = await workFolder();
    const first = server.urlOf('first');
    const second = server.urlOf('second');
    const files = join(folder, '.sluice/files');
    const source = await startService(await preparedDataDir(), {
      DATABASE_URL: first,
      STORAGE_URL: `file://${files}`,
    });
    const key = source.key ?? '';
    const jobId = await loadUsers(source.url, key, 400);
    await follow('Out of the embedded server', folder, [
      ['$(npx sluice db url)', first],
      [shownUrl, second],
    ]);
    source.signal('SIGTERM');
    await source.finished;

    const moved = await startService(await preparedDataDir(), {
      DATABASE_URL: second,
      STORAGE_URL: `file://${join(folder, 'moved-files')}`,
    });
    expect(moved.key).toBeNull();
    await expectMoved(moved.url, key, jobId);
    moved.signal('SIGTERM');
    await moved.finished;

    const there = join(folder, 'there');
    await promisify(execFile)('cp', ['-a', `${await preparedDataDir()}/.`, there]);
    await follow('Into the embedded server', folder, [[shownUrl, second]]);
    const back = await startService(there);
    expect(back.key).toBeNull();
    await expectMoved(back.url, key, jobId);
  },
);

// The test needs an installed pg_dump, because the embedded server does not include one. This
// pg_dump must not be older than the server, because pg_dump refuses newer servers.
test.skipIf(dumpMajor < embeddedMajor)(
  `the commands of docs/moving.md move a service out of the embedded server (needs pg_dump ${embeddedMajor})`,
  async () => {
    const server = await makeServer();
    const folder = await workFolder();
    const data = join(folder, '.sluice');
    await promisify(execFile)('cp', ['-a', `${await preparedDataDir()}/.`, data]);
    const source = await startService(data);
    const key = source.key ?? '';
    const jobId = await loadUsers(source.url, key, 400);
    const target = server.urlOf('first');
    await follow('Out of the embedded server', folder, [[shownUrl, target]]);
    source.signal('SIGTERM');
    await source.finished;
    const moved = await startService(await preparedDataDir(), {
      DATABASE_URL: target,
      STORAGE_URL: `file://${join(folder, 'moved-files')}`,
    });
    await expectMoved(moved.url, key, jobId);
  },
);
