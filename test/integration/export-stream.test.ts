import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { createEnvironment } from '../../src/access/environment-store.ts';
import { type ExportOptions, exportAll, records, texts } from '../support/files/export-files.ts';
import { nextEnvironmentName } from '../support/files/load-file.ts';
import { systemOfFile } from '../support/servers/system.ts';

const streamColumns = [
  ...['event_type', 'user_id', 'company_id', 'inserted_at', 'event_id', 'event_name', 'source', 'metadata'],
];

const t = await systemOfFile();
let environmentId = 0;

/** Stores users, companies and events, some at the same time, some a microsecond apart. */
async function fill(): Promise<void> {
  const { db } = t.system;
  await sql`insert into users (environment_id, user_id, company_id, metadata, updated_at)
    select ${environmentId}::int, 'u' || i, case when i % 3 = 0 then 'c1' end,
      jsonb_build_object('n', i, 'text', repeat('x', i % 900)),
      '2026-03-01T00:00:00Z'::timestamptz + (i * 7919 % 5000) * interval '1 second'
    from generate_series(1, 1500) i`.execute(db);
  await sql`insert into companies (environment_id, company_id, metadata, updated_at)
    select ${environmentId}::int, 'c' || i, jsonb_build_object('quote', '"a", b'),
      '2026-03-01T00:00:00Z'::timestamptz + i * interval '100 seconds'
    from generate_series(1, 40) i`.execute(db);
  await sql`select ensure_events_partition('2026-02-02'), ensure_events_partition('2026-03-02')`.execute(db);
  await sql`insert into events
      (environment_id, event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata)
    select ${environmentId}::int, 'e' || i, case when i % 4 = 0 then 'page_view' else 'track' end, '=name',
      'u' || i % 100, case when i % 2 = 0 then 'c2' end, 'test',
      '2026-02-28T23:00:00.000001Z'::timestamptz + i * interval '1.5 seconds', '{}'
    from generate_series(1, 6000) i`.execute(db);
}

beforeAll(async () => {
  ({ environmentId } = await createEnvironment(t.system.db, nextEnvironmentName()));
  await fill();
});

const stream = async (options: ExportOptions = {}) => {
  const written = await exportAll(t.system, environmentId, { layout: 'stream', ...options });
  return { written, files: await texts(t.system, written) };
};

/** Returns the expected rows, read from the tables and sorted by PostgreSQL. */
async function expected(): Promise<Record<string, unknown>[]> {
  const { rows } = await sql<{ row: Record<string, unknown> }>`
    select (json_build_object('event_type', event_type, 'user_id', user_id, 'company_id', company_id,
      'inserted_at', to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'event_id', event_id, 'event_name', event_name,
      'source', source, 'metadata', metadata)) as row
    from (
      select 'identify_user' as event_type, user_id, company_id, updated_at as at, null as event_name, null as source,
        metadata, 2 as rank, null as event_id
      from users where environment_id = ${environmentId}
      union all
      select 'identify_company', null, company_id, updated_at, null, null, metadata, 1, null
      from companies where environment_id = ${environmentId}
      union all
      select event_type, user_id, company_id, inserted_at, event_name, source, metadata, 3, event_id
      from events where environment_id = ${environmentId}
    ) all_rows
    order by at, rank, user_id, company_id, event_id`.execute(t.system.db);
  return rows.map(({ row }) => row);
}

describe('a stream', () => {
  // proves: other-readers
  test('a stream is one complete file of rows of all kinds in order of time', async () => {
    const { written, files } = await stream();
    expect(written.files.map(({ filename, rows }) => [filename, rows])).toEqual([
      ['stream.ndjson', 7540],
      ['manifest.json', 0],
    ]);
    expect(records(files['stream.ndjson'])).toEqual(await expected());
    const [first = ''] = (files['stream.ndjson'] ?? '').split('\n', 1);
    expect(Object.keys(JSON.parse(first) as object)).toEqual(streamColumns);
  });
});
