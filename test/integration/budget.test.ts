import { existsSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { expect, test } from 'vitest';
import { columns, userCells } from '../../bench/users-file.ts';
import { Rows } from '../../src/load/map/rows.ts';
import { loadFile, newEnvironment } from '../support/files/load-file.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { readCsvRows, readNdjsonRows } from '../unit/mapping/read-rows.ts';

/*
 * Each test divides the processor time of some work by the processor time of a baseline that never
 * changes. Work and baseline are measured alternately. A budget is 1.15 times the ratio that was
 * measured when the budget was set. A change that makes the work more expensive on purpose raises
 * the budget in the same commit.
 */

/** True if the kernel counts the processor time of processes in nanoseconds. */
const isCounted = existsSync('/proc/self/schedstat');
const budgets = { csv: 0.98, ndjson: 1.9, newUsers: 1.25, changedUsers: 1.15, event: 1.25 };

const t = await systemOfFile();
/** A merge takes longer than mapping, so merges are measured fewer times. */
const turns = { mapping: 15, merging: 5 };

/** Does some work. Returns its processor time in seconds. */
type Measure = () => Promise<number>;

/** Returns the shortest time of the work, divided by the shortest time of the baseline. */
async function ratioOf(work: Measure, baseline: Measure, count = turns.merging): Promise<number> {
  const times: number[] = [];
  const baselineTimes: number[] = [];
  for (let turn = 0; turn < count; turn++) {
    times.push(await work());
    baselineTimes.push(await baseline());
  }
  return Math.min(...times) / Math.min(...baselineTimes);
}

async function inNode(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

/** Measures the sessions of this test's database. The work must not open or close sessions. */
async function inPostgres(work: () => unknown): Promise<number> {
  const before = await sessionSeconds();
  await work();
  return (await sessionSeconds()) - before;
}

async function sessionSeconds(): Promise<number> {
  const { rows } = await t.system.pool.query<{ pid: number }>(
    'select pid from pg_stat_activity where datname = current_database()',
  );
  const seconds = rows.map(
    ({ pid }) => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e9,
  );
  return seconds.reduce((sum, each) => sum + each, 0);
}

const users = (count: number, changed = 0) => Array.from({ length: count }, (_, n) => userCells(n, changed));

const csvOf = (rows: readonly (readonly string[])[]): string =>
  rows.map((cells) => `${cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',')}\n`).join('');

function recordOf([userId, name, email, companyId, ...others]: readonly string[]): object {
  const rest = columns.slice(4).map((column, index) => [column, others[index]] as const);
  return { user_id: userId, company_id: companyId, metadata: { name, email, ...Object.fromEntries(rest) } };
}

const ndjsonOf = (rows: readonly (readonly string[])[]): string =>
  rows.map((cells) => `${JSON.stringify(recordOf(cells))}\n`).join('');

const mapped = users(20_000);
const lines = ndjsonOf(mapped).trimEnd().split('\n');
const parseAndWrite = (): Promise<number> =>
  inNode(() => {
    let length = 0;
    for (const line of lines) length += JSON.stringify(JSON.parse(line)).length;
    expect(length).toBeGreaterThan(lines.length);
  });

test('mapping a CSV record stays within its budget', async () => {
  const csv = Buffer.from(csvOf(mapped));
  const rows = new Rows();
  const ratio = await ratioOf(
    () => inNode(() => readCsvRows({ delimiter: ',', columns }, csv, { rows })),
    parseAndWrite,
    turns.mapping,
  );
  expect(rows.users.rows).toBe(mapped.length);
  expect(ratio).toBeLessThan(budgets.csv);
});

test('mapping an NDJSON record stays within its budget', async () => {
  const ndjson = Buffer.from(ndjsonOf(mapped));
  const rows = new Rows();
  const ratio = await ratioOf(
    () => inNode(() => readNdjsonRows(ndjson, { rows })),
    parseAndWrite,
    turns.mapping,
  );
  expect(rows.users.rows).toBe(mapped.length);
  expect(ratio).toBeLessThan(budgets.ndjson);
});

const merged = 10_000;
const header = `${columns.join(',')}\n`;

/** Upserts rows with COPY and one statement, without checks or a ledger. */
async function upsertByHand(rows: readonly (readonly string[])[]): Promise<void> {
  const text = rows
    .map((cells) => {
      const { user_id, company_id, metadata } = recordOf(cells) as Record<string, unknown>;
      return `${user_id}\t${company_id}\t${JSON.stringify(metadata).replaceAll('\\', '\\\\')}\n`;
    })
    .join('');
  await inTransaction(async (client) => {
    await client.query(
      'create temporary table staged (id text, company text, properties jsonb) on commit drop',
    );
    await pipeline(Readable.from([text]), client.query(copyFrom('copy staged from stdin')));
    await client.query(`
      insert into by_hand (environment_id, user_id, company_id, metadata)
      select 1, id, company, properties from staged
      on conflict (environment_id, user_id) do update set
        metadata = by_hand.metadata || excluded.metadata,
        company_id = excluded.company_id
      where (by_hand.metadata || excluded.metadata, excluded.company_id)
        is distinct from (by_hand.metadata, by_hand.company_id)`);
  });
}

async function inTransaction(work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
  const client = await t.system.pool.connect();
  try {
    await client.query('begin');
    await work(client);
    await client.query('commit');
  } finally {
    client.release();
  }
}

test.runIf(isCounted).each([
  { kind: 'new users', changed: 0, budget: budgets.newUsers },
  { kind: 'users of whom half changed', changed: 0.5, budget: budgets.changedUsers },
])('merging $kind stays within its budget', async ({ changed, budget }) => {
  await t.system.pool.query('create table if not exists by_hand (like users including all)');
  const before = users(merged);
  const after = changed === 0 ? before : users(merged, changed);
  const [csvBefore, csvAfter] = [before, after].map((rows) => header + csvOf(rows)) as [string, string];
  const ratio = await ratioOf(
    async () => {
      await t.system.pool.query('truncate users, companies, changes');
      const environment = await newEnvironment(t.system);
      if (changed > 0) await loadFile(t.system, environment, csvBefore);
      return inPostgres(() => loadFile(t.system, environment, csvAfter));
    },
    async () => {
      await t.system.pool.query('truncate by_hand');
      if (changed > 0) await upsertByHand(before);
      return inPostgres(() => upsertByHand(after));
    },
  );
  expect(ratio).toBeLessThan(budget);
});

const events = 5_000;
const callers = 64;

test.runIf(isCounted)('storing a single event stays within its budget', async () => {
  const environment = await newEnvironment(t.system);
  await t.system.pool.query('create table if not exists events_by_hand (like events including all)');
  let stored = 0;
  const record = () => ({
    environmentId: environment,
    eventId: null,
    eventName: 'Paid',
    userId: `u${stored++ % 1_000}`,
    companyId: null,
    insertedAt: null,
    metadata: { plan: 'pro', amount: stored },
    marked: false,
    bytes: 100,
  });
  const track = async (): Promise<void> => {
    for (let n = 0; n < events; n += callers)
      await Promise.all(Array.from({ length: callers }, () => t.system.ingest.track(record(), null)));
  };
  const insertByHand = async (): Promise<void> => {
    for (let n = 0; n < events; n += callers) {
      const rows = JSON.stringify(Array.from({ length: callers }, record));
      await t.system.pool.query({
        name: 'by hand',
        text: `
          insert into events_by_hand (environment_id, event_id, event_type, event_name, user_id, source, inserted_at, metadata)
          select e."environmentId", gen_random_uuid(), 'track', e."eventName", e."userId", 'by-hand', now(), e.metadata
          from json_to_recordset($1::json) as e
            ("environmentId" int, "eventName" text, "userId" text, metadata jsonb)`,
        values: [rows],
      });
    }
  };
  const inBoth = async (work: () => Promise<void>): Promise<number> => {
    let node = 0;
    const postgres = await inPostgres(async () => {
      node = await inNode(work);
    });
    return node + postgres;
  };
  await track();
  await insertByHand();
  const ratio = await ratioOf(
    () => inBoth(track),
    () => inBoth(insertByHand),
  );
  expect(ratio).toBeLessThan(budgets.event);
});
