import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { assertRestorable } from '../../src/backup/restore.ts';
import { embeddedPostgres } from '../../src/embedded-postgres/embedded-postgres.ts';
import { isNewDatabase, provideDatabase } from '../../src/provide-database.ts';

const log = pino({ level: 'silent' });
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-restore-'));
});
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

/** Its number was taken by another process since. */
const killed = { pid: process.ppid, startedAt: '1' };

async function dataOf(major: string, dataDir: string): Promise<void> {
  await mkdir(join(dataDir, 'postgres', 'data'), { recursive: true });
  await writeFile(join(dataDir, 'postgres', 'data', 'PG_VERSION'), major);
}

// proves: backup-atomic
test('a restore that was killed is said to be unfinished, no empty database is made, and the next restore replaces what it left', async () => {
  const dataDir = join(folder, 'killed');
  const data = join(dataDir, 'postgres');
  await embeddedPostgres.claimForRestore(data, log);
  await dataOf('18', dataDir);
  const config = { databaseUrl: null, dataDir };
  await expect(provideDatabase(config, log, { share: true })).rejects.toThrow('is not complete');
  await expect(isNewDatabase(config)).rejects.toThrow('is not complete');
  await expect(embeddedPostgres.inspect(data)).rejects.toThrow('is not complete');
  await assertRestorable({ dataDir, log, replace: false });
  await writeFile(`${data}.restoring.json`, JSON.stringify({ ...killed, aside: null }));
  const again = await embeddedPostgres.claimForRestore(data, log);
  expect(again.aside).toBeNull();
  expect(await readdir(data)).toEqual([]);
  await again.complete();
  expect(await isNewDatabase(config)).toBe(true);
});

// proves: backup-atomic
test('of two restores into one data directory the second is refused, and takes nothing from the first', async () => {
  const data = join(folder, 'claimed', 'postgres');
  const first = await embeddedPostgres.claimForRestore(data, log);
  await expect(embeddedPostgres.claimForRestore(data, log)).rejects.toThrow(
    `is under way in ${join(folder, 'claimed')}: process ${process.pid}`,
  );
  expect(await readdir(join(folder, 'claimed'))).toEqual(['postgres', 'postgres.restoring.json']);
  await first.undo();
  expect(await readdir(join(folder, 'claimed'))).toEqual([]);
  const { pid } = spawnSync(process.execPath, ['--version']);
  await writeFile(`${data}.restoring.json`, JSON.stringify({ pid, startedAt: null, aside: null }));
  await (await embeddedPostgres.claimForRestore(data, log)).undo();
});

// proves: upgrade
test('data of another major version of PostgreSQL is refused with the way out, makes room for a restore, and comes back if that fails', async () => {
  const dataDir = join(folder, 'earlier');
  const data = join(dataDir, 'postgres');
  await dataOf('17', dataDir);
  await expect(provideDatabase({ databaseUrl: null, dataDir }, log, { share: false })).rejects.toThrow(
    /made by PostgreSQL 17.*sluice backup.*sluice restore FILE --replace/s,
  );
  await expect(assertRestorable({ dataDir, log, replace: false })).rejects.toThrow('--replace');
  await assertRestorable({ dataDir, log, replace: true });
  const claim = await embeddedPostgres.claimForRestore(data, log);
  expect((await readdir(dataDir)).map((name) => join(dataDir, name)).sort()).toEqual(
    [data, `${data}.restoring.json`, claim.aside].sort(),
  );
  await claim.undo();
  expect(await readdir(dataDir)).toEqual(['postgres']);
  expect(await readdir(data)).toEqual(['data']);
});

// proves: backup-atomic
test.each([
  ['before the data is set aside', false],
  ['after it was set aside', true],
])(
  'a restore that replaces data and is killed %s loses none of it, and no empty database takes its place',
  async (_, isAside) => {
    const dataDir = join(folder, `replaced-${isAside}`);
    const data = join(dataDir, 'postgres');
    const aside = `${data}.before-restore-1`;
    await dataOf('18', dataDir);
    await writeFile(join(data, 'kept'), '');
    await writeFile(`${data}.restoring.json`, JSON.stringify({ ...killed, aside }));
    if (isAside) await rename(data, aside);
    await expect(provideDatabase({ databaseUrl: null, dataDir }, log, { share: false })).rejects.toThrow(
      isAside ? `rename ${aside} to ${data}` : `to give it up, remove ${data}.restoring.json`,
    );
    const claim = await embeddedPostgres.claimForRestore(data, log);
    expect(await readdir(aside)).toContain('kept');
    expect(await readdir(data)).toEqual([]);
    await claim.undo();
    expect(await readdir(data)).toContain('kept');
    expect(await readdir(dataDir)).toEqual(['postgres']);
  },
);
