import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { textRow, workbookFile } from '../support/files/workbook-file.ts';
import { connectTo } from '../support/servers/connect.ts';
import { createTestDatabase, type TestDatabase } from '../support/servers/postgres.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  type Finished,
  preparedDataDir,
  type RunOptions,
  runCli,
  startCli,
  startService,
  temporaryFolder,
} from './cli.ts';
import { descendants } from './processes.ts';
import { type Job, jobEnded, query, usersCsv } from './service.ts';

let dataDir: string;
let folder: string;
/** A database on the server of the tests. `null` if the test uses the embedded server. */
let database: TestDatabase | null;
beforeEach(async () => {
  folder = await temporaryFolder();
  database = null;
});
afterEach(() => database?.drop());
const prepare = async (): Promise<void> => {
  dataDir = await preparedDataDir();
};

const put = (name: string, content: string | Uint8Array): Promise<void> =>
  writeFile(join(folder, name), content);

function importing(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const env = { ...(database !== null && { DATABASE_URL: database.url }), ...options.env };
  return runCli(['import', ...args, '--data-dir', dataDir], { cwd: folder, ...options, env });
}

const stored = async (sql: string) =>
  (await connectTo(database?.url ?? '', (client) => client.query<object>(sql))).rows;

interface Result {
  readonly file: string;
  readonly job: Job | null;
  readonly rejects_file: string | null;
  readonly errors: readonly { readonly error_code: string }[];
}

const results = ({ stdout }: Finished): readonly Result[] =>
  (JSON.parse(stdout) as { loads: readonly Result[] }).loads;

describe('sluice import, without a server', () => {
  beforeEach(async () => {
    dataDir = await temporaryFolder();
    database = await createTestDatabase();
  });

  test('sluice import loads a small file itself, and has workers load a larger one', async () => {
    const env = { DATABASE_URL: database?.url ?? '' };
    const workers = async () => stored('select worker from sluice.load_chunks order by load_id, chunk_no');
    for (const [rows, isOwn] of [
      [10, true],
      [5_000, false],
    ] as const) {
      await put('users.csv', usersCsv(rows));
      const running = startCli(['import', 'users.csv', '--data-dir', dataDir], { cwd: folder, env });
      const result = await running.finished;
      expect(result, result.stderr).toMatchObject({ code: 0 });
      const [last] = (await workers()).slice(-1) as { worker: string }[];
      expect(last?.worker.endsWith(` ${running.pid}`), `${last?.worker}, ${running.pid}`).toBe(isOwn);
    }
  });

  test('sluice import takes a pattern in quotes, a workbook, a gzipped file and standard input, in the given order', async () => {
    const sheet = { name: 'S', rows: textRow(1, 'user_id', 'v') + textRow(2, 'a', '10') };
    await put('part-10.xlsx', workbookFile({ sheets: [sheet] }));
    await put('part-9.csv.gz', gzipSync('user_id,v\na,9\n'));
    const result = await importing(['part-*', '-', '--json'], { input: '{"user_id":"a","v":"last"}\n' });
    expect(result.code).toBe(0);
    expect(results(result).map(({ file }) => file)).toEqual(['part-9.csv.gz', 'part-10.xlsx', 'stdin']);
    expect(await stored("select metadata->>'v' as v from sluice.users")).toEqual([{ v: 'last' }]);
  });

  test('a load that --max-errors stopped reports the reason, and no counts', async () => {
    await put(
      'users.csv',
      `user_id,name\n${Array.from({ length: 31 }, (_, n) => `${n < 2 ? '' : n},Ada\n`).join('')}`,
    );
    const stopped = await importing(['users.csv', '--max-errors', '1']);
    expect([stopped.code, stopped.stdout]).toEqual([
      1,
      expect.stringMatching(/Failed: Stopped: 2 refused, 1 allowed by .*max.errors; nothing written/),
    ]);
    expect(stopped.stdout).not.toMatch(/inserted|superseded|rows\/s/);
  });

  test('sluice import never overwrites a file of rejects, which may be half corrected', async () => {
    await put('users.ndjson', '{"user_id":"a"}\n[]\n');
    await importing(['users.ndjson']);
    await put('users.rejects.ndjson', 'mended');
    await importing(['users.ndjson']);
    expect(await readFile(join(folder, 'users.rejects.ndjson'), 'utf8')).toBe('mended');
    expect(await readdir(folder)).toContain('users.rejects-2.ndjson');
  });

  test('--map and --entity name the columns, and an option without use for the file is refused', async () => {
    await put('crm.csv', 'Customer ID,Account\n7,acme\n');
    const args = ['--map', 'Customer ID=user_id', '--map', 'Account=company_id', '--entity', 'users'];
    const refused = await importing(['crm.csv', ...args, '--sheet', 'Customers']);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('sheet says how to read a workbook');
    expect(await importing(['crm.csv', ...args])).toMatchObject({ code: 0 });
    await put('plain.txt', '8,x|acme\n');
    const plain = ['--header', 'none', '--delimiter', 'pipe', '--map', '1=user_id', '--map', '2=company_id'];
    const result = await importing(['plain.txt', ...plain]);
    expect(result.stdout).toContain('read as: CSV, utf-8, pipes between cells, no header');
    const users = 'select user_id, company_id from sluice.users order by user_id';
    expect(await stored(users)).toEqual([
      { user_id: '7', company_id: 'acme' },
      { user_id: '8,x', company_id: 'acme' },
    ]);
  });

  test('sluice import stops at the first file that it cannot load, and names the files that it leaves out', async () => {
    await put('1.csv', usersCsv(1));
    await put('2.csv', 'a,b\n1,2\n');
    await put('3.csv', usersCsv(3));
    const result = await importing(['1.csv', '2.csv', '3.csv', '--json']);
    expect(result.code).toBe(2);
    expect(results(result).map(({ job }) => job?.status)).toEqual(['completed', undefined]);
    expect(results(result)[1]?.errors).toMatchObject([{ error_code: 'unrecognised_columns' }]);
    expect(result.stderr).toContain('3.csv');
  });
});

describe('sluice import, with the embedded database', () => {
  beforeEach(prepare);

  test('Ctrl-C amid a load prints the next step, and the next start completes the load exactly', async () => {
    await put('users.csv', usersCsv(100_000));
    const args = ['import', 'users.csv', '--data-dir', dataDir, '--json'];
    const running = startCli(args, { cwd: folder, env: { CHUNK_BYTES: '64k' } });
    await waitFor('rows', async () => {
      const [row] = await query<{ n: number }>(dataDir, 'select rows_read::int as n from sluice.loads');
      return (row?.n ?? 0) > 0;
    });
    running.signal('SIGINT');
    const stopped = await running.finished;
    expect(stopped.code).toBe(130);
    expect(stopped.stdout).toContain('sluice start');
    const jobId = results(stopped)[0]?.job?.job_id ?? '';
    const service = await startService(dataDir);
    const key = (await runCli(['keys', 'create', '--data-dir', dataDir])).stdout.trim();
    const job = await jobEnded(service.url, key, jobId);
    expect(job).toMatchObject({ status: 'completed', counts: { read: 100_000, inserted: 100_000 } });
    expect(await query(dataDir, 'select count(*)::int as n from sluice.users')).toEqual([{ n: 100_000 }]);
  });

  test('Ctrl-C before a file was accepted reports that nothing was accepted', async () => {
    const running = startCli(['import', '-', '--data-dir', dataDir], { cwd: folder, keepInputOpen: true });
    await waitFor('its database', () => query(dataDir, 'select 1 from sluice.environments limit 1'));
    running.signal('SIGINT');
    const stopped = await running.finished;
    expect(stopped.code).toBe(130);
    expect(stopped.stderr).toContain('nothing of this file was accepted');
  });
});

describe('sluice import, beside a running start', () => {
  beforeEach(prepare);

  test('sluice import beside a running start uses its database and its workers', async () => {
    const service = await startService(dataDir, { WORKERS: '1' });
    await put('users.csv', usersCsv(5_000));
    await waitFor(
      'a worker',
      async () => (await query(dataDir, 'select 1 from sluice.workers')).length === 1,
    );
    const running = startCli(['import', 'users.csv', '--data-dir', dataDir, '--json'], { cwd: folder });
    const below = new Set<string>();
    const watch = setInterval(() => {
      void descendants(running.pid).then((processes) => {
        for (const { command } of processes) below.add(command);
      });
    }, 50);
    const result = await running.finished;
    clearInterval(watch);
    expect(result.code).toBe(0);
    expect([...below].filter((command) => / work$|postgres/.test(command))).toEqual([]);
    const jobId = results(result)[0]?.job?.job_id ?? '';
    expect(await jobEnded(service.url, service.key, jobId)).toMatchObject({ status: 'completed' });
  });
});

describe('a wrong sluice import', () => {
  let shared: TestDatabase;
  beforeAll(async () => {
    shared = await createTestDatabase();
  });
  afterAll(() => shared.drop());

  test.each([
    ['a file that is not there', ['nowhere.csv'], 'There is no file nowhere.csv'],
    ['a pattern that matches nothing', ['*.xml'], 'No file matches *.xml'],
    ['a folder', ['.'], 'is a folder'],
    ['an unknown environment', ['good.csv', '--env', 'nowhere'], 'sluice env create nowhere'],
    ['a bad map', ['good.csv', '--map', 'user_id'], 'Their Header=user_id'],
    ['columns nobody knows', ['odd.csv'], 'columns seen: a, b'],
  ])('a wrong sluice import exits with 2 and the reason: %s', async (_what, args, message) => {
    await put('good.csv', usersCsv(1));
    await put('odd.csv', 'a,b\n1,2\n');
    const refused = await runCli(['import', ...args], {
      cwd: folder,
      env: { DATABASE_URL: shared.url, DATA_DIR: folder },
    });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(message);
    expect(refused.stderr).not.toMatch(/^ +at /m);
  });
});
