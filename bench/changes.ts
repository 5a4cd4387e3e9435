/**
 * npm run bench:changes [-- --rows N] [--turns N] [--log N] [--only STEPS]
 *
 * Measures the cost of the log of changes. Loads users into one PostgreSQL, alternately with and
 * without the triggers of the log. Reports the bytes that the log needs per changed row, and the
 * time to undo a load. Also measures two operations that read the log: the history of one profile
 * among N rows of other profiles, and an export after changes to 1 000 profiles.
 *
 * --only: steps, separated by commas: loads, undo, increment, history.
 */

import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import pg from 'pg';
import { cpuSince, least, median, readCpu } from './figures.ts';
import { diskOfBenches, makeFolder } from './folder.ts';
import { apiKey, peaks, resetPeaks, startService } from './service.ts';
import { writeUsersFile } from './users-file.ts';

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '200000' },
    turns: { type: 'string', default: '3' },
    log: { type: 'string', default: '10000000' },
    only: { type: 'string', default: 'loads,undo,increment,history' },
  },
});
const rows = Number(flags.rows);
const turns = Number(flags.turns);
const logRows = Number(flags.log);
const changedUsers = 1_000;
const historySeconds = 10;
const historyConnections = 1;
const imagesOfOne = 50;
const rowsAtATime = 1_000_000;

/** Processor time of PostgreSQL and of the Node processes, and elapsed time, in seconds. */
interface Cost {
  readonly postgres: number;
  readonly node: number;
  readonly seconds: number;
}

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const folder = await makeFolder('sluice-bench-files-');
const service = await startService();
const client = new pg.Client({ connectionString: service.databaseUrl });
await client.connect();
try {
  const steps = {
    loads: compareLoads,
    undo: measureUndo,
    increment: measureIncrement,
    history: measureHistory,
  };
  print(
    `${rows} users, 10 columns, ${turns} turns; ${process.version}, ${await version()}, ${availableParallelism()} cores, ${diskOfBenches}`,
  );
  for (const name of flags.only.split(',') as (keyof typeof steps)[]) {
    print('');
    await steps[name]();
  }
} finally {
  await client.end();
  await service.stop();
  await rm(folder, { recursive: true, force: true });
}

async function version(): Promise<string> {
  const { rows: versions } = await client.query<{ v: string }>(
    `select 'PostgreSQL ' || current_setting('server_version') as v`,
  );
  return versions[0]?.v ?? '';
}

/**
 * All files contain the same users. `changed` is the share of rows that differ from the first file.
 */
async function fileOf(name: string, changed: number, turn: number): Promise<string> {
  const path = join(folder, `${name}.csv`);
  await writeUsersFile(path, { rows, format: 'csv', changed, version: turn });
  return path;
}

async function costOf(work: () => Promise<unknown>): Promise<Cost> {
  const before = readCpu(service);
  const startedAt = performance.now();
  await work();
  const seconds = (performance.now() - startedAt) / 1_000;
  const { api, workers, postgres } = cpuSince(service, before);
  return { postgres, node: api + workers, seconds };
}

async function tidy(): Promise<void> {
  await client.query('vacuum (analyze) sluice.users, sluice.companies');
  await client.query('checkpoint');
}

async function setLog(isOn: boolean): Promise<void> {
  for (const table of ['users', 'companies'])
    for (const trigger of ['changes', 'removals'])
      await client.query(
        `alter table sluice.${table} ${isOn ? 'enable' : 'disable'} trigger ${table}_log_${trigger}`,
      );
}

async function compareLoads(): Promise<void> {
  print(
    '| load | log | PostgreSQL, CPU s, least / median | rows/s | with ÷ without, least / median | peak RSS, MiB |',
  );
  print('|---|---|---|---|---|---|');
  const costs = new Map<string, Cost[]>();
  const memory = new Map<string, string>();
  const titles = ['all new', 'unchanged', 'half changed'];
  for (let turn = 1; turn <= turns; turn++) {
    const files = [await fileOf('new', 0, 0), await fileOf('new', 0, 0), await fileOf('half', 0.5, turn)];
    for (const isOn of turn % 2 === 0 ? [false, true] : [true, false]) {
      await setLog(isOn);
      await client.query('truncate sluice.users, sluice.companies, sluice.changes');
      for (const [at, title] of titles.entries()) {
        await tidy();
        resetPeaks(service.pid);
        const key = `${title} ${isOn}`;
        costs.set(key, [
          ...(costs.get(key) ?? []),
          await costOf(() => service.load(files[at] as string, 'text/csv')),
        ]);
        memory.set(
          key,
          Object.entries(peaks(service.pid))
            .map(([name, mib]) => `${name} ${mib}`)
            .join(', '),
        );
      }
      if (isOn) await printBytes(turn);
    }
  }
  await setLog(true);
  for (const title of titles) {
    const [on, off] = [true, false].map((isOn) => costs.get(`${title} ${isOn}`) ?? []) as [Cost[], Cost[]];
    const ratios = on.map(({ postgres }, turn) => postgres / (off[turn]?.postgres ?? Number.NaN));
    for (const [state, stateCosts] of [
      ['on', on],
      ['off', off],
    ] as const) {
      const cpu = stateCosts.map(({ postgres }) => postgres);
      const speed = Math.round(rows / median(stateCosts.map(({ seconds }) => seconds)));
      const ratio =
        state === 'on'
          ? `${both(ratios)} (least ÷ least ${(least(cpu) / least(off.map((c) => c.postgres))).toFixed(3)})`
          : '';
      print(
        `| ${title} | ${state} | ${both(cpu)} | ${speed} | ${ratio} | ${memory.get(`${title} ${state === 'on'}`)} |`,
      );
    }
  }
}

function both(values: readonly number[]): string {
  return `${least(values).toFixed(3)} / ${median(values).toFixed(3)}`;
}

async function printBytes(turn: number): Promise<void> {
  const { rows: sizes } = await client.query<{ heap: string; all: string; changes: string; image: string }>(`
    select sum(pg_table_size(inhrelid)) as heap, sum(pg_total_relation_size(inhrelid)) as all,
      (select count(*) from sluice.changes) as changes, (select avg(pg_column_size(before)) from sluice.changes) as image
    from pg_inherits
    where inhparent = 'sluice.changes'::regclass`);
  const { heap, all, changes, image } = sizes[0] ?? { heap: 0, all: 0, changes: 0, image: 0 };
  const each = (bytes: string | number): number => Math.round(Number(bytes) / Number(changes));
  print(
    `- turn ${turn}: ${changes} changes, of each ${each(all)} bytes: table ${each(heap)}, of which the properties ${Math.round(Number(image))}`,
  );
}

async function measureUndo(): Promise<void> {
  await setLog(true);
  await client.query('truncate sluice.users, sluice.companies, sluice.changes');
  await service.load(await fileOf('new', 0, 0), 'text/csv');
  for (let turn = 1; turn <= turns; turn++) {
    const path = await fileOf('all', 1, turn);
    await tidy();
    let job = '';
    const load = await costOf(async () => {
      job = (await service.load(path, 'text/csv')).job.job_id;
    });
    await tidy();
    resetPeaks(service.pid);
    const undo = await costOf(() => undoLoad(job));
    const ratio = (part: keyof Cost): string => (undo[part] / load[part]).toFixed(2);
    print(
      `- undo of a load that changed ${rows} users: ${undo.seconds.toFixed(1)} s, ${Math.round(rows / undo.seconds)} rows/s; undo ÷ load: clock ${ratio('seconds')}, PostgreSQL ${ratio('postgres')}, Node ${ratio('node')}, both ${((undo.postgres + undo.node) / (load.postgres + load.node)).toFixed(2)}; peak RSS, MiB: ${JSON.stringify(peaks(service.pid))}`,
    );
  }
}

async function undoLoad(job: string): Promise<void> {
  const response = await service.fetch(`/v1/background_jobs/${job}/undo`, { method: 'POST' });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  await endOf(((await response.json()) as { job_id: string }).job_id);
}

async function endOf(job: string): Promise<void> {
  for (;;) {
    const { status } = (await (await service.fetch(`/v1/background_jobs/${job}`)).json()) as {
      status: string;
    };
    if (status === 'completed') return;
    if (['failed', 'cancelled'].includes(status)) throw new Error(`job ${job} ${status}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function measureIncrement(): Promise<void> {
  await client.query('truncate sluice.users, sluice.companies, sluice.changes');
  await service.load(await fileOf('new', 0, 0), 'text/csv');
  await tidy();
  for (let turn = 1; turn <= turns; turn++) {
    const { rows: cursors } = await client.query<{ cursor: string }>(
      'select sluice.current_cursor() as cursor',
    );
    await client.query(
      `update sluice.users set metadata = metadata || jsonb_build_object('turn', $1::int)
       where user_id in (select user_id from sluice.users order by hashtext(user_id || $1::text) limit $2)`,
      [turn, changedUsers],
    );
    const body = { since: cursors[0]?.cursor, include_removed: true, event_type: 'users', format: 'ndjson' };
    let job = '';
    const { seconds, postgres } = await costOf(async () => {
      const response = await service.fetch('/api/v1/analytics/exports', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
      const { job_id } = (await response.json()) as { job_id: string };
      await endOf(job_id);
      job = job_id;
    });
    print(
      `- increment of ${await rowsOf(job)} of ${rows} users: ${seconds.toFixed(2)} s, PostgreSQL ${postgres.toFixed(2)} CPU s`,
    );
  }
}

async function rowsOf(job: string): Promise<number> {
  const { rows: counts } = await client.query<{ n: number }>(
    'select rows_written::int as n from sluice.exports where job_id = $1',
    [job],
  );
  return counts[0]?.n ?? Number.NaN;
}

async function measureHistory(): Promise<void> {
  await client.query('truncate sluice.users, sluice.companies, sluice.changes');
  await client.query(
    `insert into sluice.users (environment_id, user_id, metadata) values (1, 'watched', '{"n":0}')`,
  );
  for (let first = 0; first < logRows; first += rowsAtATime) {
    await client.query(
      `insert into sluice.changes (position, position_before, environment_id, entity, key, before)
       select sluice.current_position(), 3, 1, 'users', 'user ' || hashint8(n) % 1000000,
         jsonb_build_object('name', 'Ada Lovelace', 'email', n || '@example.com', 'plan', 'free', 'country', 'Germany', 'score', n)
       from generate_series($1::bigint, $2) n`,
      [first + 1, Math.min(first + rowsAtATime, logRows)],
    );
    await client.query(
      `do $$ begin for n in 1..${Math.ceil(imagesOfOne / Math.ceil(logRows / rowsAtATime))} loop
         update sluice.users set metadata = metadata || jsonb_build_object('n', random(), 'plan', 'p' || n) where user_id = 'watched'; commit;
       end loop; end $$`,
    );
  }
  await client.query('vacuum (analyze) sluice.changes');
  await client.query('checkpoint');
  for (const path of ['/v1/users/watched', '/v1/users/watched/history']) {
    const { requests, latency, non2xx } = await autocannon({
      url: service.address + path,
      connections: historyConnections,
      duration: historySeconds,
      headers: { authorization: `Token ${apiKey}` },
    });
    print(
      `- GET ${path}, ${logRows} rows in the log, ${historyConnections} connections: ${Math.round(requests.average)} req/s, p50 ${latency.p50} ms, p99 ${latency.p99} ms, max ${latency.max} ms, ${non2xx} not 200`,
    );
  }
}
