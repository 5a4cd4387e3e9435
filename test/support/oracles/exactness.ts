import { expect } from 'vitest';
import { digest, type Profile, type ProfileFile, properties, renderTable } from '../files/profile-file.ts';
import type { Sql } from '../servers/site.ts';
import { patienceMs, waitFor } from '../wait-for.ts';

export interface LedgerLoad {
  readonly load_id: number;
  readonly status: string;
  readonly failure: string | null;
  readonly total_rows: number;
  readonly chunk_count: number;
  readonly chunks_done: number;
  readonly read: number;
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly superseded: number;
  readonly rejected: number;
  readonly seconds: number;
}

export async function readLoad(sql: Sql, jobId: string): Promise<LedgerLoad> {
  const [load] = await sql<LedgerLoad>(
    `select load_id, status, failure_code || ': ' || failure_message as failure, total_rows, chunk_count, chunks_done,
       rows_read as read, rows_inserted as inserted, rows_updated as updated, rows_unchanged as unchanged,
       rows_superseded as superseded, rows_rejected as rejected,
       extract(epoch from coalesce(ended_at, now()) - accepted_at)::float8 as seconds
     from sluice.loads where job_id = $1`,
    [jobId],
  );
  if (load === undefined) throw new Error(`the ledger does not know job ${jobId}`);
  return load;
}

/**
 * Waits until a load has ended, with any status, even if the database is temporarily unavailable.
 */
export function ended(sql: Sql, jobId: string, timeoutMs = patienceMs): Promise<LedgerLoad> {
  let load: LedgerLoad | undefined;
  return waitFor(
    `job ${jobId} to end`,
    async () => {
      load = await readLoad(sql, jobId);
      return ['completed', 'failed', 'cancelled'].includes(load.status) ? load : null;
    },
    { timeoutMs, everyMs: 100 },
  ).catch(async (error: unknown) => {
    throw new Error(`${JSON.stringify(load)} ${await openTasks(sql, jobId)}`, { cause: error });
  });
}

async function openTasks(sql: Sql, jobId: string): Promise<string> {
  const rows = await sql(
    `select kind, part, attempt, losses, failures, last_error, lease_until - now() as lease, now() - notified_at as told
     from sluice.tasks where job_id = $1 limit 10`,
    [jobId],
  ).catch(() => []);
  return JSON.stringify(rows);
}

/** Waits until the given share (0 to 1) of a load's chunks is done. */
export function progressed(sql: Sql, jobId: string, share: number): Promise<LedgerLoad> {
  let load: LedgerLoad | undefined;
  return waitFor(
    `${share * 100} % of job ${jobId}; saw ${JSON.stringify(load)}`,
    async () => {
      load = await readLoad(sql, jobId);
      return load.chunks_done >= share * load.chunk_count ? load : null;
    },
    // Polls often, because the test must act as soon as the share is done.
    { everyMs: 20 },
  );
}

/**
 * Expects the outcome that every load must have despite any fault: completed, with the right
 * counts, the users in `table`, and no leftovers. `fresh`: all users of the file are new.
 */
export async function expectExact(
  sql: Sql,
  jobId: string,
  file: ProfileFile,
  table: ReadonlyMap<string, Profile>,
  { timeoutMs = patienceMs, fresh = true }: { timeoutMs?: number; fresh?: boolean } = {},
): Promise<LedgerLoad> {
  const load = await ended(sql, jobId, timeoutMs);
  expect({ status: load.status, failure: load.failure }).toEqual({ status: 'completed', failure: null });
  expectTally(load, file, fresh);
  await expectTable(sql, table);
  await expectRejects(sql, load.load_id, file);
  await expectNothingLeft(sql, load.load_id);
  return load;
}

function expectTally(load: LedgerLoad, file: ProfileFile, fresh: boolean): void {
  const { read, inserted, updated, unchanged, superseded, rejected, chunks_done } = load;
  expect(chunks_done).toBe(load.chunk_count);
  expect({ read, total: load.total_rows, rejected }).toEqual({
    read: file.rows,
    total: file.rows,
    rejected: file.refused.length,
  });
  expect(inserted + updated + unchanged + superseded + rejected).toBe(read);
  // For each key, one record counts as inserted, updated or unchanged. All other records with the
  // key count as superseded. The order and the number of merges do not matter.
  const ofKeys = { keys: inserted + updated + unchanged, superseded };
  expect(ofKeys).toEqual({ keys: file.keys, superseded: file.rows - file.keys - file.refused.length });
  if (fresh)
    expect({ inserted, updated, unchanged }).toEqual({ inserted: file.keys, updated: 0, unchanged: 0 });
}

const rendered = `concat_ws('|', user_id, coalesce(company_id, ''), ${properties
  .map((name) => `coalesce(metadata ->> '${name}', '')`)
  .join(', ')})`;

/** Returns a digest of the users. Tables with the same users have the same digest. */
async function digestUsers(sql: Sql): Promise<{ digest: string; rows: number; strange: number }> {
  const names = `'{${properties.join(',')}}'::text[]`;
  const [row] = await sql<{ digest: string | null; rows: number; strange: number }>(
    `select
       encode(sha256(convert_to(string_agg(${rendered}, E'\\n' order by user_id), 'utf8')), 'hex') as digest,
       count(*)::int as rows,
       count(*) filter (where metadata - ${names} <> '{}')::int as strange
     from sluice.users`,
  );
  return { digest: row?.digest ?? digest([]), rows: row?.rows ?? 0, strange: row?.strange ?? 0 };
}

async function expectTable(sql: Sql, table: ReadonlyMap<string, Profile>): Promise<void> {
  const expected = renderTable(table);
  const stored = await digestUsers(sql);
  if (stored.digest !== digest(expected)) throw new Error(await describeDifference(sql, expected));
  expect(stored).toEqual({ digest: digest(expected), rows: table.size, strange: 0 });
  const companies = [...new Set([...table.values()].map(([company = '']) => company))];
  const rows = await sql<{ company_id: string }>('select company_id from sluice.companies order by 1');
  const companyIds = new Set(rows.map((row) => row.company_id));
  expect(companies.filter((company) => company !== '' && !companyIds.has(company))).toEqual([]);
}

async function describeDifference(sql: Sql, expected: readonly string[]): Promise<string> {
  const rows = await sql<{ line: string }>(`select ${rendered} as line from sluice.users order by user_id`);
  const stored = new Set(rows.map((row) => row.line));
  const wanted = new Set(expected);
  const missing = expected.filter((line) => !stored.has(line));
  const surplus = rows.filter((row) => !wanted.has(row.line));
  return [
    `the table differs from the serial oracle in ${missing.length} of ${expected.length} rows`,
    ...missing.slice(0, 5).map((line) => `  wanted ${line}`),
    ...surplus.slice(0, 5).map((row) => `  stored ${row.line}`),
  ].join('\n');
}

async function expectRejects(sql: Sql, loadId: number, file: ProfileFile): Promise<void> {
  const rejects = await sql<{ row_number: number }>(
    'select row_number from sluice.load_rejects where load_id = $1 order by row_number',
    [loadId],
  );
  expect(rejects.map((reject) => reject.row_number)).toEqual(file.refused);
}

const leftovers = `
  select 'chunk ' || chunk_no || ' is not done' as what from sluice.load_chunks where load_id = $1 and done_at is null
  union all
  select 'task ' || kind || ' ' || part from sluice.tasks where kind in ('begin', 'chunk', 'finish') and subject_id = $1
  union all
  select 'keys of chunk ' || chunk_no from sluice.load_chunk_keys where load_id = $1
  union all
  select 'replay note ' || key_hash from sluice.load_replays where load_id = $1
  union all
  select 'session ' || application_name || ' is ' || state from pg_stat_activity
  where datname = current_database() and state like 'idle in transaction%' and application_name <> 'test brake'
  union all
  select 'advisory lock ' || classid || ' ' || objid from pg_locks
  where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
  limit 10`;

/** Expects no leftovers. Waits, because sessions and locks may briefly outlive a load. */
async function expectNothingLeft(sql: Sql, loadId: number): Promise<void> {
  let rows: readonly { what: string }[] = [];
  await waitFor('nothing to be left over', async () => {
    rows = await sql<{ what: string }>(leftovers, [loadId]);
    return rows.length === 0;
  }).catch(() => expect(rows).toEqual([]));
}

export function report(line: string): void {
  process.stderr.write(`  chaos: ${line}\n`);
}

/** Formats durations in milliseconds as seconds. */
export function summary(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): string =>
    ((sorted[Math.round((sorted.length - 1) * share)] ?? Number.NaN) / 1000).toFixed(1);
  return `${at(0)} / ${at(0.5)} / ${at(1)} s (min / median / max)`;
}
