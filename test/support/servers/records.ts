import pg from 'pg';
import { expect } from 'vitest';
import { waitFor } from '../wait-for.ts';
import { type Answer, type ErrorBody, type RawConnection, serve, type TestServer } from './http.ts';
import { openTestSystem, type TestSystem, type TestSystemOptions } from './system.ts';

/** Response to a single record. Its body is empty or an error record. */
export type RecordAnswer = Answer<ErrorBody | null>;
export type Body = string | Uint8Array<ArrayBuffer>;

interface PostOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the key of the environment `default`. `null`: send no key. */
  readonly key?: string | null;
}

/** Times are strings with microseconds. Sorting the strings sorts the times. */
export interface StoredProfile {
  readonly id: string;
  readonly company_id: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The stored metadata as a string, with all digits of its numbers. */
  readonly exact: string;
  readonly first_seen_at: string;
  readonly last_seen_at: string;
  readonly updated_at: string;
}

export interface StoredEvent {
  readonly event_id: string;
  readonly event_type: string;
  readonly event_name: string;
  readonly user_id: string;
  readonly company_id: string | null;
  readonly source: string;
  /** Time of the event in UTC, with microseconds and a final `Z`. */
  readonly inserted_at: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The stored metadata as a string, with all digits of its numbers. */
  readonly exact: string;
  /** Name of the partition that contains the event, such as `sluice.events_2026_11`. */
  readonly partition: string;
}

export type ProblemText = readonly [code: string, details: string];

interface HeldLock {
  /** Runs another statement in the transaction that holds the lock. */
  also(statement: string): Promise<void>;
  release(): Promise<void>;
}

/** A server, with functions that send single records to it and read the tables. */
export interface RecordSite {
  readonly t: TestSystem;
  readonly server: TestServer;
  /** Posts a record. Sends strings and bytes unchanged, and other values as JSON. */
  post(path: string, record: unknown, options?: PostOptions): Promise<RecordAnswer>;
  /** Posts a record. Expects status 202 without a body. */
  accept(path: string, record: unknown, options?: PostOptions): Promise<void>;
  /** Posts a record. Expects status 400 with exactly the given problems, and unchanged tables. */
  refuse(path: string, record: unknown, ...problems: readonly ProblemText[]): Promise<void>;
  /** Returns a whole HTTP request, to send over a raw connection. */
  request(path: string, record: unknown, headers?: readonly string[]): string;
  /**
   * Sends several requests in a single write over one connection. Returns their statuses in order.
   */
  pipeline(requests: readonly (readonly [path: string, record: unknown, ...unknown[]])[]): Promise<number[]>;
  sql<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  user(userId: string, environmentId?: number): Promise<StoredProfile | null>;
  company(companyId: string, environmentId?: number): Promise<StoredProfile | null>;
  /** Sorted by time. */
  events(userId: string, environmentId?: number): Promise<StoredEvent[]>;
  /** Counts the rows of all environments. */
  countRows(): Promise<Readonly<Record<'users' | 'companies' | 'events', number>>>;
  /**
   * Runs a statement in a transaction on a separate connection. Keeps the transaction open until
   * `release` is called.
   */
  hold(statement: string): Promise<HeldLock>;
  /** Waits until at least `sessions` sessions wait for a lock. Returns their process ids. */
  blocked(sessions?: number): Promise<number[]>;
  /**
   * Runs `work` with a second server on the same data. Like separate processes, the two servers
   * share no memory.
   */
  onAnotherProcess(work: (other: RecordSite) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

const json = { 'content-type': 'application/json' };

export async function openRecordSite(options: TestSystemOptions = {}): Promise<RecordSite> {
  const t = await openTestSystem(options);
  return recordSite(t, await serve(t));
}

/** `close` closes both the system and the server. */
export function recordSite(t: TestSystem, server: TestServer): RecordSite {
  const releases: (() => Promise<void>)[] = [];
  const connections: RawConnection[] = [];
  const home = t.environment.environmentId;

  const sql: RecordSite['sql'] = async <Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ) => (await t.system.pool.query<Row>(text, [...values])).rows;

  const post: RecordSite['post'] = (path, record, { headers = {}, key } = {}) =>
    server.json<ErrorBody | null>(path, {
      method: 'POST',
      body: bodyOf(record),
      headers: { ...json, ...headers },
      ...(key === undefined ? {} : { key }),
    });

  const request: RecordSite['request'] = (path, record, headers = []) => {
    const body = bodyOf(record);
    const head = [
      `POST ${path} HTTP/1.1`,
      'host: x',
      `authorization: Token ${t.key}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
      ...headers,
    ];
    return `${head.join('\r\n')}\r\n\r\n${body}`;
  };

  const countRows: RecordSite['countRows'] = async () => {
    const [counts] = await sql<{ users: number; companies: number; events: number }>(
      `select (select count(*) from sluice.users)::int as users,
         (select count(*) from sluice.companies)::int as companies,
         (select count(*) from sluice.events)::int as events`,
    );
    if (counts === undefined) throw new Error('no counts');
    return counts;
  };

  return {
    t,
    server,
    post,
    request,
    sql,
    async accept(path, record, options) {
      const { status, headers, body } = await post(path, record, options);
      expect({ status, body }).toEqual({ status: 202, body: null });
      expect([headers.get('content-length'), headers.get('content-type')]).toEqual(['0', null]);
    },
    async refuse(path, record, ...problems) {
      const before = await countRows();
      const { status, body } = await post(path, record);
      expect({ status, body }).toEqual({ status: 400, body: errorsOf('Bad Request', ...problems) });
      expect(await countRows()).toEqual(before);
    },
    async pipeline(requests) {
      const connection = await server.connect();
      connections.push(connection);
      await connection.write(requests.map(([path, record]) => request(path, record)).join(''));
      const statuses = await waitFor(`${requests.length} answers`, () => {
        const list = statusesIn(connection.received);
        return (list.length >= requests.length || connection.ended) && list;
      });
      connection.reset();
      return statuses;
    },
    user: (userId, environmentId = home) => readProfile(sql, 'users', userId, environmentId),
    company: (companyId, environmentId = home) => readProfile(sql, 'companies', companyId, environmentId),
    events: (userId, environmentId = home) =>
      sql<StoredEvent>(
        `select event_id, event_type, event_name, user_id, company_id, source, metadata, metadata::text as exact,
           to_char(inserted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as inserted_at,
           tableoid::regclass::text as partition
         from sluice.events
         where environment_id = $1 and user_id = $2
         order by sluice.events.inserted_at, event_id`,
        [environmentId, userId],
      ),
    countRows,
    async hold(statement) {
      const client = new pg.Client({ connectionString: t.databaseUrl });
      await client.connect();
      let released: Promise<void> | undefined;
      const release = () => {
        released ??= client.query('commit').then(() => client.end());
        return released;
      };
      releases.push(release);
      await client.query('begin');
      await client.query(statement);
      return { release, also: (another) => client.query(another).then(() => undefined) };
    },
    blocked: (sessions = 1) =>
      waitFor(`${sessions} sessions to wait for a lock`, async () => {
        const rows = await sql<{ pid: number }>(
          `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return rows.length >= sessions && rows.map(({ pid }) => pid);
      }),
    async onAnotherProcess(work) {
      const system = t.openAnother();
      const other = { ...t, system, close: () => system.close() };
      const there = recordSite(other, await serve(other));
      try {
        await work(there);
      } finally {
        await there.close();
      }
    },
    async close() {
      for (const connection of connections) connection.reset();
      for (const release of releases) await release().catch(() => undefined);
      await server.stop();
      await t.close();
    },
  };
}

export function bodyOf(record: unknown): Body {
  return typeof record === 'string' || record instanceof Uint8Array
    ? (record as Body)
    : JSON.stringify(record);
}

function statusesIn(received: string): number[] {
  return Array.from(received.matchAll(/HTTP\/1\.1 (\d{3}) /g), ([, status]) => Number(status));
}

/** Returns the expected body of a refusal. Each problem has all four fields. */
export function errorsOf(
  phrase: string,
  ...problems: readonly (readonly [code: string, details: string])[]
): ErrorBody {
  return {
    errors: problems.map(([error_code, details]) => ({
      error: phrase,
      error_code,
      message: expect.stringMatching(/\S/) as string,
      details,
    })),
  };
}

async function readProfile(
  sql: RecordSite['sql'],
  table: 'users' | 'companies',
  id: string,
  environmentId: number,
): Promise<StoredProfile | null> {
  const columns = table === 'users' ? 'user_id as id, company_id' : 'company_id as id, null as company_id';
  const [row] = await sql<StoredProfile & pg.QueryResultRow>(
    `select ${columns}, metadata, metadata::text as exact, first_seen_at::text, last_seen_at::text, updated_at::text
     from sluice.${table}
     where environment_id = $1 and ${table === 'users' ? 'user_id' : 'company_id'} = $2`,
    [environmentId, id],
  );
  return row ?? null;
}
