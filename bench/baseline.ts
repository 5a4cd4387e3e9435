import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { columns } from './users-file.ts';

/**
 * What a capable person would write by hand, in the same database: one connection, COPY of the file into an
 * unlogged table, one INSERT … SELECT … ON CONFLICT into a table like ours. No validation, no rejects, no ledger.
 */
export interface Baseline {
  /** Seconds for the file. `again` says that the table holds the rows already. */
  load(path: string, format: 'csv' | 'ndjson'): Promise<number>;
  /** Empties the table. */
  clear(): Promise<void>;
  /** Writes out what earlier steps left dirty, so that they do not weigh on the next. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

const properties = columns.filter((column) => column !== 'user_id' && column !== 'company_id');

const fromCsv = `
  insert into bench.users (environment_id, user_id, company_id, metadata)
  select
    1,
    user_id,
    company_id,
    jsonb_strip_nulls(jsonb_build_object(${properties.map((name) => `'${name}', ${name}`).join(', ')}))
  from bench.staged`;

const fromNdjson = `
  insert into bench.users (environment_id, user_id, company_id, metadata)
  select 1, line ->> 'user_id', line ->> 'company_id', line -> 'metadata'
  from bench.staged_lines`;

const onConflict = `
  on conflict (environment_id, user_id) do update set
    metadata = users.metadata || excluded.metadata,
    company_id = coalesce(excluded.company_id, users.company_id),
    updated_at = now()`;

export async function openBaseline(databaseUrl: string): Promise<Baseline> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`
    create schema bench;
    create unlogged table bench.staged (${columns.map((name) => `${name} text`).join(', ')});
    create unlogged table bench.staged_lines (line jsonb);
    create table bench.users (like sluice.users including all)`);
  return {
    async load(path, format) {
      await client.query('truncate bench.staged, bench.staged_lines');
      const startedAt = performance.now();
      const copy =
        format === 'csv'
          ? 'copy bench.staged from stdin (format csv, header)'
          : // Taken as CSV with quotes and delimiters that never occur, a line is one value as it stands.
            `copy bench.staged_lines from stdin (format csv, quote e'\\x01', delimiter e'\\x02')`;
      await pipeline(createReadStream(path, { highWaterMark: 256 * 1024 }), client.query(copyFrom(copy)));
      await client.query((format === 'csv' ? fromCsv : fromNdjson) + onConflict);
      return (performance.now() - startedAt) / 1_000;
    },
    async clear() {
      await client.query('truncate bench.users');
    },
    async settle() {
      await client.query('checkpoint');
    },
    close: () => client.end(),
  };
}
