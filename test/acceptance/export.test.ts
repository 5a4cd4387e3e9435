import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/servers/postgres.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Finished, preparedDataDir, runCli, startCli, startService, temporaryFolder } from './cli.ts';
import { query, usersCsv } from './service.ts';

let dataDir: string;
let folder: string;
/** A database on the server of the tests. `null` if the test uses the embedded server. */
let database: TestDatabase | null;
beforeEach(async () => {
  dataDir = await temporaryFolder();
  folder = await temporaryFolder();
  database = await createTestDatabase();
});
afterEach(() => database?.drop());

const sluice = (...args: string[]): Promise<Finished> =>
  runCli([...args, '--data-dir', dataDir], {
    cwd: folder,
    env: database === null ? {} : { DATABASE_URL: database.url },
  });

async function load(rows: number): Promise<void> {
  await writeFile(join(folder, 'users.csv'), usersCsv(rows));
  const result = await sluice('import', 'users.csv');
  expect(result, result.stderr).toMatchObject({ code: 0 });
}

const files = (name: string) => readdir(join(folder, name)).then((names) => names.sort());

describe('sluice export, without a server', () => {
  test('sluice export writes the imported data, verified, and leaves nothing else', async () => {
    await load(300);
    const result = await sluice('export', '--out', 'backup');
    expect(result, result.stderr).toMatchObject({ code: 0 });
    expect(result.stdout).toMatch(/backup: complete and verified/);
    expect(result.stdout).toMatch(/users\.ndjson\.gz +300/);
    expect(await files('backup')).toEqual([
      ...['companies.ndjson.gz', 'events.ndjson.gz', 'manifest.json', 'users.ndjson.gz'],
    ]);
    expect(await files('.')).toEqual(['backup', 'users.csv']);
    const text = gunzipSync(await readFile(join(folder, 'backup/users.ndjson.gz'))).toString();
    expect(text.trimEnd().split('\n')).toHaveLength(300);
    const since = /Next increment: --since (\S+)/.exec(result.stdout)?.[1] ?? '';
    const next = ['--out', 'next', '--since', since, '--include-removed', '--compression', 'none'];
    expect(await sluice('export', ...next)).toMatchObject({ code: 0 });
    expect(await readFile(join(folder, 'next/users.ndjson'), 'utf8')).toBe('');
    const again = await sluice('import', 'backup/users.ndjson.gz', '--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ loads: [{ job: { counts: { unchanged: 300 } } }] });
  });

  // proves: environment-back
  test('all data and definitions of an environment are the same in another after one command', async () => {
    await load(300);
    await writeFile(
      join(folder, 'defined.yaml'),
      'features: [{ key: f, display_name: F, data_type: string }]',
    );
    await sluice('definitions', 'apply', 'defined.yaml');
    const result = await sluice('export', '--out', 'takeout', '--everything');
    expect(result, result.stderr).toMatchObject({ code: 0 });
    await sluice('env', 'create', 'copy');
    const imported = await sluice('import', 'takeout', '--env', 'copy', '--json');
    expect(imported, imported.stderr).toMatchObject({ code: 0 });
    expect(JSON.parse(imported.stdout)).toMatchObject({
      files: [{ dataset: 'users', rows: 300, same: 300, dated: 300 }],
      setup: { definitions: 'applied' },
    });
    for (const option of ['--dry-run', '--entity=users', '--if-duplicate=skip', '--encoding=utf-8'])
      expect(await sluice('import', 'takeout', option), option).toMatchObject({ code: 2 });
    expect(await sluice('export', '--out', 'x', '--everything', '--user', 'u1')).toMatchObject({ code: 2 });
  });

  test('a wrong sluice export exits with 2 and the reason, and writes nothing', async () => {
    for (const [flags, message] of [
      [['--from', '2026-02-30'], /from must be a day/],
      [['--segment', '77'], /no such segment/i],
      [['--env', 'nowhere'], /no environment nowhere/],
    ] as const) {
      const result = await sluice('export', '--out', 'none', ...flags);
      expect([flags, result.code]).toEqual([flags, 2]);
      expect(result.stderr).toMatch(message);
      expect(existsSync(join(folder, 'none'))).toBe(false);
    }
  });
});

describe('Ctrl-C', () => {
  test('Ctrl-C cancels sluice export, and leaves no folder', async () => {
    await database?.drop();
    database = null;
    dataDir = await preparedDataDir();
    await load(10);
    const service = await startService(dataDir, { WORKERS: '0' });
    // The export needs a worker, and only the command could start one. Because the command sees the
    // worker inserted below, it starts no worker, and the export keeps waiting.
    await query(
      dataDir,
      `insert into sluice.workers (worker_id, host, pid, seen_at)
      values ('01a1f879-8845-7223-9ca4-ceafb3823817', 'elsewhere', 1, now() + interval '1 hour')`,
    );
    const running = startCli(['export', '--out', 'none', '--data-dir', dataDir], { cwd: folder });
    await waitFor('the export to be accepted', async () => {
      const rows = await query<{ status: string }>(dataDir, 'select status from sluice.exports');
      return rows.length === 1;
    });
    running.signal('SIGINT');
    expect((await running.finished).code).toBe(130);
    expect(await query(dataDir, 'select status from sluice.exports')).toEqual([{ status: 'cancelled' }]);
    expect(await files('.')).toEqual(['users.csv']);
    service.signal('SIGTERM');
    await service.finished;
  });
});
