import type { ReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { halvesOf, wholeOf } from './file-halves.ts';
import { columns } from './users-file.ts';

/**
 * What a capable person would write by hand, in the same database: COPY of the file into an unlogged table, one INSERT …
 * SELECT … ON CONFLICT into a table like ours. With two connections, each copies half of the file, and then merges half of the
 * keys, in key order. No validation, no rejects, no ledger.
 */
export interface Baseline {
  /** Seconds for the file. */
  load(path: string, format: 'csv' | 'ndjson', options?: MergeOptions): Promise<number>;
  /** Merges what something else has brought into `staged`. Seconds. */
  mergeStaged(): Promise<number>;
  /** Empties the tables. */
  clear(): Promise<void>;
  /** Of the merged rows. */
  readonly table: string;
  /** Of the rows of a CSV as they stand. */
  readonly staged: string;
  close(): Promise<void>;
}

export interface MergeOptions {
  /** Leaves rows alone that stay as they are: `where … is distinct from`. */
  readonly onlyChanged?: boolean;
}

const properties = columns.filter((column) => column !== 'user_id' && column !== 'company_id');
/** About half of the ids come before it. */
const middleId = 'usr_8';

export async function openBaseline(databaseUrl: string, connections: 1 | 2): Promise<Baseline> {
  const schema = `by_hand_${connections}`;
  const clients = Array.from({ length: connections }, () => new pg.Client({ connectionString: databaseUrl }));
  for (const client of clients) await client.connect();
  const [first] = clients as [pg.Client];
  await first.query(`
    create schema ${schema};
    create unlogged table ${schema}.staged (${columns.map((name) => `${name} text`).join(', ')});
    create unlogged table ${schema}.staged_lines (line jsonb);
    create table ${schema}.users (like sluice.users including all)`);
  const parts = connections === 1 ? ['true'] : [`user_id < '${middleId}'`, `user_id >= '${middleId}'`];
  const merge = (format: 'csv' | 'ndjson', options: MergeOptions): Promise<unknown> =>
    Promise.all(
      clients.map((client, at) =>
        client.query(mergeStatement(schema, format, parts[at] ?? '', connections > 1, options)),
      ),
    );
  return {
    table: `${schema}.users`,
    staged: `${schema}.staged`,
    async load(path, format, options = {}) {
      await first.query(`truncate ${schema}.staged, ${schema}.staged_lines`);
      const startedAt = performance.now();
      const sources = connections === 1 ? [wholeOf(path)] : await halvesOf(path);
      await Promise.all(
        clients.map((client, at) => copyFile(client, schema, sources[at] as ReadStream, format, at === 0)),
      );
      await merge(format, options);
      return secondsSince(startedAt);
    },
    async mergeStaged() {
      const startedAt = performance.now();
      await merge('csv', {});
      return secondsSince(startedAt);
    },
    async clear() {
      await first.query(`truncate ${schema}.staged, ${schema}.staged_lines, ${schema}.users`);
    },
    async close() {
      for (const client of clients) await client.end();
    },
  };
}

async function copyFile(
  client: pg.Client,
  schema: string,
  source: ReadStream,
  format: 'csv' | 'ndjson',
  hasHeader: boolean,
): Promise<void> {
  const copy =
    format === 'csv'
      ? `copy ${schema}.staged from stdin (format csv, header ${hasHeader})`
      : // Taken as CSV with quotes and delimiters that never occur, a line is one value as it stands.
        `copy ${schema}.staged_lines from stdin (format csv, quote e'\\x01', delimiter e'\\x02')`;
  await pipeline(source, client.query(copyFrom(copy)));
}

function mergeStatement(
  schema: string,
  format: 'csv' | 'ndjson',
  part: string,
  inKeyOrder: boolean,
  { onlyChanged = false }: MergeOptions,
): string {
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
    where ${part}
    ${inKeyOrder ? 'order by user_id collate "C"' : ''}
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

function secondsSince(startedAt: number): number {
  return (performance.now() - startedAt) / 1_000;
}
