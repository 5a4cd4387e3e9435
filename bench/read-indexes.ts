import type pg from 'pg';

const ours = 'create index on bench.users (environment_id, company_id) where company_id is not null';
const variants: Readonly<Record<string, readonly string[]>> = {
  'as it is': [ours],
  '+ GIN (metadata jsonb_path_ops)': [
    ours,
    'create index on bench.users using gin (metadata jsonb_path_ops)',
  ],
  'user_id in the index of companies': [
    'create index on bench.users (environment_id, company_id, user_id) where company_id is not null',
  ],
};
const times = 3;

/** What an index would cost those who bring data in: the users stored once more under it, then a tenth of them changed. */
export async function compareIndexes(client: pg.Client, print: (line: string) => void): Promise<void> {
  print('\n| indexes on users | insert of all, s | change of a tenth, s | of these in place | indexes, MB |');
  print('|---|---|---|---|---|');
  await client.query('create schema bench');
  for (const [name, indexes] of Object.entries(variants)) {
    const results: { insert: number; change: number; inPlace: number; megabytes: number }[] = [];
    for (let time = 0; time < times; time++) results.push(await measure(client, indexes));
    results.sort((a, b) => a.insert + a.change - b.insert - b.change);
    const { insert, change, inPlace, megabytes } = results[Math.floor(times / 2)] ?? results[0] ?? never();
    print(`| ${name} | ${insert.toFixed(1)} | ${change.toFixed(1)} | ${inPlace} % | ${megabytes} |`);
  }
  await client.query('drop schema bench cascade');
}

function never(): never {
  throw new Error('nothing was measured');
}

async function measure(client: pg.Client, indexes: readonly string[]) {
  await client.query('drop table if exists bench.users');
  // Some room on each page, so that a change may be made in place.
  await client.query(
    'create table bench.users (like sluice.users) with (fillfactor = 85, autovacuum_enabled = off)',
  );
  await client.query('create unique index on bench.users (environment_id, user_id)');
  for (const index of indexes) await client.query(index);
  await client.query('checkpoint');
  const insert = await seconds(() => client.query('insert into bench.users select * from sluice.users'));
  await client.query('checkpoint');
  const change = await seconds(() =>
    client.query(
      `update bench.users set metadata = metadata || '{"score": "changed"}' where hashtext(user_id) % 10 = 0`,
    ),
  );
  await client.query('select pg_stat_force_next_flush()');
  const { rows } = await client.query<{ inPlace: number; megabytes: number }>(
    `select
      round(100.0 * n_tup_hot_upd / greatest(1, n_tup_upd))::int as "inPlace",
      round(pg_indexes_size(relid) / 1e6)::int as megabytes
    from pg_stat_user_tables
    where schemaname = 'bench' and relname = 'users'`,
  );
  return { insert, change, ...(rows[0] ?? never()) };
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1_000;
}
