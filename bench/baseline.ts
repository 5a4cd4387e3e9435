import { createReadStream, createWriteStream, type ReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { columns } from './users-file.ts';

/**
 * Baseline for loads, as an expert would write it in SQL: COPY into an unlogged table, then one
 * INSERT … ON CONFLICT into a table like `sluice.users`. This SQL does not validate, collect
 * rejects or keep a ledger.
 */
export interface Baseline {
  /** Returns the elapsed seconds. */
  load(path: string, format: 'csv' | 'ndjson', options?: MergeOptions): Promise<number>;
  clear(): Promise<void>;
  readonly table: string;
  close(): Promise<void>;
}

export interface MergeOptions {
  /** Skips unchanged rows with `where … is distinct from`. */
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
      : // Each line is read as a single value, because these quotes and delimiters never occur.
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

/**
 * Copies rows in stored form to `sluice.users` on two connections. A load cannot be faster, because
 * the copy parses, checks and counts nothing.
 */
export interface ReadyRows {
  /** Saves the stored rows in the order of the loaded file. */
  save(path: string): Promise<void>;
  /** Returns the elapsed seconds. */
  copy(path: string): Promise<number>;
  close(): Promise<void>;
}

export async function openReadyRows(databaseUrl: string): Promise<ReadyRows> {
  const clients = [0, 1].map(() => new pg.Client({ connectionString: databaseUrl }));
  for (const client of clients) await client.connect();
  const [first] = clients as [pg.Client];
  // The time columns get their default values, as in sluice.
  const { rows } = await first.query<{ columns: string }>(`
    select string_agg(quote_ident(column_name), ', ' order by ordinal_position) as columns
    from information_schema.columns
    where table_schema = 'sluice' and table_name = 'users' and column_default is distinct from 'now()'`);
  const columns = rows[0]?.columns ?? '';
  return {
    async save(path) {
      const rowOfFile = "substring(metadata ->> 'email' from '\\.(\\d+)@')::int";
      const query = `select ${columns} from sluice.users order by ${rowOfFile}`;
      const source = first.query(copyTo(`copy (${query}) to stdout`));
      await pipeline(source, createWriteStream(path));
    },
    async copy(path) {
      const startedAt = performance.now();
      const halves = await halvesOf(path);
      await Promise.all(
        clients.map((client, at) =>
          pipeline(halves[at as 0 | 1], client.query(copyFrom(`copy sluice.users (${columns}) from stdin`))),
        ),
      );
      return (performance.now() - startedAt) / 1_000;
    },
    async close() {
      for (const client of clients) await client.end();
    },
  };
}

/** Maximum length of a line in our files, in bytes. */
const longestLine = 64 * 1_024;

/**
 * Returns the file as two streams. The second one starts after the end of a line near the middle.
 */
export async function halvesOf(path: string): Promise<readonly [ReadStream, ReadStream]> {
  const file = await open(path);
  try {
    const middle = Math.floor((await file.stat()).size / 2);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(longestLine), 0, longestLine, middle);
    const end = middle + buffer.subarray(0, bytesRead).indexOf('\n');
    return [
      createReadStream(path, { highWaterMark: readSize, end }),
      createReadStream(path, { highWaterMark: readSize, start: end + 1 }),
    ];
  } finally {
    await file.close();
  }
}
