import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { halvesOf } from './file-halves.ts';

/**
 * The physical limit: rows exactly as sluice has written them, ready in a file, are copied into `sluice.users` itself by two
 * connections, half each. Nothing is parsed, checked or counted; the database does the least that it can.
 */
export interface ReadyRows {
  /** Writes what `sluice.users` holds now, in the order of the file. */
  save(path: string): Promise<void>;
  /** Seconds. */
  copy(path: string): Promise<number>;
  close(): Promise<void>;
}

export async function openReadyRows(databaseUrl: string): Promise<ReadyRows> {
  const clients = [0, 1].map(() => new pg.Client({ connectionString: databaseUrl }));
  for (const client of clients) await client.connect();
  const [first] = clients as [pg.Client];
  // As sluice does, the times are left to their defaults.
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
