import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { columns } from './users-file.ts';

/**
 * What a capable person would write by hand, in the same database: COPY of the file into an unlogged table, one INSERT …
 * SELECT … ON CONFLICT into a table like ours. No validation, no rejects, no ledger.
 */
export interface Baseline {
  /** Seconds for the file. */
  load(path: string, format: 'csv' | 'ndjson', options?: MergeOptions): Promise<number>;
  /** Empties the tables. */
  clear(): Promise<void>;
  /** Of the merged rows. */
  readonly table: string;
  close(): Promise<void>;
}

export interface MergeOptions {
  /** Leaves rows alone that stay as they are: `where … is distinct from`. */
  readonly onlyChanged?: boolean;
}

const properties = columns.filter((column) => column !== 'user_id' && column !== 'company_id');
const schema = 'by_hand';
const readSize = 256 * 1_024;

export async function openBaseline(databaseUrl: string): Promise<Baseline> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`
    create schema ${schema};
    create unlogged table ${schema}.staged (${columns.map((name) => `${name} text`).join(', ')});
    create unlogged table ${schema}.staged_lines (line jsonb);
    create table ${schema}.users (like sluice.users including all)`);
  return {
    table: `${schema}.users`,
    async load(path, format, options = {}) {
      await client.query(`truncate ${schema}.staged, ${schema}.staged_lines`);
      const startedAt = performance.now();
      await copyFile(client, path, format);
      await client.query(mergeStatement(format, options));
      return (performance.now() - startedAt) / 1_000;
    },
    async clear() {
      await client.query(`truncate ${schema}.staged, ${schema}.staged_lines, ${schema}.users`);
    },
    close: () => client.end(),
  };
}

async function copyFile(client: pg.Client, path: string, format: 'csv' | 'ndjson'): Promise<void> {
  const copy =
    format === 'csv'
      ? `copy ${schema}.staged from stdin (format csv, header)`
      : // Taken as CSV with quotes and delimiters that never occur, a line is one value as it stands.
        `copy ${schema}.staged_lines from stdin (format csv, quote e'\\x01', delimiter e'\\x02')`;
  await pipeline(createReadStream(path, { highWaterMark: readSize }), client.query(copyFrom(copy)));
}

function mergeStatement(format: 'csv' | 'ndjson', { onlyChanged = false }: MergeOptions): string {
  const rows =
    format === 'csv'
      ? `select
          user_id,
          company_id,
          jsonb_strip_nulls(jsonb_build_object(${properties.map((name) => `'${name}', ${name}`).join(', ')}))
        from ${schema}.staged`
      : `select line ->> 'user_id', line ->> 'company_id', line -> 'metadata'
        from ${schema}.staged_lines`;
  return `
    insert into ${schema}.users (environment_id, user_id, company_id, metadata)
    select 1, user_id, company_id, metadata
    from (${rows}) as incoming (user_id, company_id, metadata)
    on conflict (environment_id, user_id) do update set
      metadata = users.metadata || excluded.metadata,
      company_id = coalesce(excluded.company_id, users.company_id),
      updated_at = now()
    ${
      onlyChanged
        ? `where (users.metadata || excluded.metadata, coalesce(excluded.company_id, users.company_id))
          is distinct from (users.metadata, users.company_id)`
        : ''
    }`;
}
