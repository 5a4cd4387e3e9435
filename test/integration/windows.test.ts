import fc from 'fast-check';
import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import type { System } from '../../src/context.ts';
import type { Entity } from '../../src/domain/entity.ts';
import { pageOf } from '../../src/export/write/page.ts';
import type { UserRow } from '../../src/ingest/profile-store.ts';
import { inTransaction } from '../../src/postgres/database.ts';
import { everything } from '../support/files/export-files.ts';
import {
  newEnvironment,
  readProfiles,
  runAtOnce,
  shuffled,
  startManually,
} from '../support/files/load-file.ts';
import type { StoredProfile } from '../support/oracles/serial-oracle.ts';
import { runs } from '../support/runs.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { writeUsers } from '../support/servers/write-users.ts';

const t = await systemOfFile({ settings: { POOL_SIZE: '12' } });
await t.system.pool.query("select sluice.ensure_events_partition('2026-01-15')");

/**
 * Several writers, each with its own list of actions, change a few profiles. Meanwhile, a reader
 * updates a copy from increments.
 */

const key = fc.constantFrom('u0', 'u1', 'u2', 'u3');
const companyId = fc.constantFrom(null, '', 'c0', 'c1');
const properties = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom(1, 2, 3, null), {
  maxKeys: 2,
});
/** Keeps a transaction open for some milliseconds, without using processor time. */
const sleep = 'select pg_sleep($1::float / 1000)';
const pause = fc.constantFrom(0, 0, 1, 5, 20);
const record = fc.record({
  key,
  companyId,
  properties,
  at: fc.constantFrom(null, null, '2020-01-01T00:00:00Z'),
});
const load = fc.record({
  kind: fc.constant('load' as const),
  records: fc.array(record, { minLength: 1, maxLength: 8 }),
  ranks: fc.array(fc.nat(), { minLength: 8, maxLength: 8 }),
});
const deletion = fc.record({
  kind: fc.constant('deletion' as const),
  of: fc.oneof(
    fc.tuple(fc.constant('users' as const), key),
    fc.tuple(fc.constant('companies' as const), fc.constantFrom('c0', 'c1')),
  ),
});
const single = fc.record({ kind: fc.constant('single' as const), record });
const statements = {
  update: `update sluice.users set metadata = metadata || jsonb_build_object('a', $3::int) where environment_id = $1 and user_id = $2`,
  upsert: `insert into sluice.users (environment_id, user_id, metadata) values ($1, $2, jsonb_build_object('b', $3::int))
    on conflict (environment_id, user_id) do update set metadata = excluded.metadata`,
  remove: 'delete from sluice.users where environment_id = $1 and user_id = $2 and $3::int > 0',
  rename: `update sluice.users set user_id = user_id || '-' || $3::int || '-' || txid_current() where environment_id = $1 and user_id = $2`,
  event: `insert into sluice.events (inserted_at, environment_id, event_id, event_name, user_id, source)
    values ('2026-01-02', $1, gen_random_uuid(), 'n' || $3::int, 'of ' || $2, 'sql')`,
};
const transaction = fc.record({
  kind: fc.constant('transaction' as const),
  // Each transaction writes its keys in the same order, so transactions cannot deadlock.
  work: fc
    .array(fc.tuple(key, fc.constantFrom(...Object.values(statements)), fc.integer({ min: 1, max: 9 })), {
      minLength: 1,
      maxLength: 4,
    })
    .map((work) => work.sort(([a], [b]) => (a < b ? -1 : 1))),
  pause,
  commits: fc.constantFrom(true, true, false),
});
const list = <T>(arbitrary: fc.Arbitrary<T>) => fc.array(arbitrary, { minLength: 1, maxLength: 5 });
/** Loads and deletions share one lane, so one writer runs both. */
const timetable = fc.tuple(
  list(fc.oneof(load, deletion)),
  list(single),
  list(single),
  list(transaction),
  list(transaction),
  list(transaction),
);
type Timetable = typeof timetable extends fc.Arbitrary<infer T> ? T : never;
type Act = Timetable[number][number];
type ProfileRecord = typeof record extends fc.Arbitrary<infer T> ? T : never;

const rowOf = (environmentId: number, user: ProfileRecord): UserRow => ({
  environmentId,
  key: user.key,
  companyId: user.companyId,
  properties: JSON.stringify(user.properties),
  removes: user.companyId === '' || Object.values(user.properties).includes(null),
});

const lineOf = ({ key: user_id, companyId: company, properties: metadata, at }: ProfileRecord): string =>
  JSON.stringify({
    event_type: 'identify_user',
    user_id,
    ...(company === null ? {} : { company_id: company === '' ? null : company }),
    ...(at === null ? {} : { inserted_at: at }),
    metadata,
  });

async function act(system: System, environmentId: number, action: Act): Promise<void> {
  if (action.kind === 'load') {
    const text = action.records.map((each) => `${lineOf(each)}\n`).join('');
    const started = await startManually(system, environmentId, text, { chunkBytes: 150 });
    await runAtOnce(started, shuffled(started, action.ranks), 2);
  } else if (action.kind === 'deletion') {
    await (await acceptDeletion(system, environmentId, action.of[0], [action.of[1]])).run();
  } else if (action.kind === 'single') {
    await writeUsers(system.pool, [rowOf(environmentId, action.record)], []);
  } else await runTransaction(system, environmentId, action);
}

async function runTransaction(
  { pool }: System,
  environmentId: number,
  action: Act & { readonly kind: 'transaction' },
): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    for (const [user, statement, n] of action.work) await client.query(statement, [environmentId, user, n]);
    await client.query(sleep, [action.pause]);
    await client.query(action.commits ? 'commit' : 'rollback');
  } finally {
    client.release();
  }
}

interface Line {
  readonly user_id: string;
  readonly company_id: string | null;
  readonly event_id: string;
  readonly metadata: Record<string, never>;
  readonly removed?: true | null;
}

/** A copy of an environment that is updated only from increments. */
class Copy {
  readonly #environmentId: number;
  readonly #profiles = {
    users: new Map<string, StoredProfile>(),
    companies: new Map<string, StoredProfile>(),
  };
  readonly #events = new Set<string>();
  readonly #delivered = new Set<string>();
  cursor: string | null = null;

  constructor(environmentId: number) {
    this.#environmentId = environmentId;
  }

  get content() {
    return {
      users: Object.fromEntries(this.#profiles.users),
      companies: Object.fromEntries(this.#profiles.companies),
      events: [...this.#events].sort(),
    };
  }

  /** Applies the changes since the cursor of the copy. */
  async take({ pool }: System): Promise<void> {
    const { cursor, pages, positions } = await inTransaction(pool, async ({ db, client }) => {
      await client.query('set transaction isolation level repeatable read');
      const filter = {
        environmentId: this.#environmentId,
        request: { ...everything, includeRemoved: true, since: this.cursor },
        segment: null,
        excludedSegments: [],
      };
      const readLines = async (dataset: Entity | 'events') =>
        (await pageOf(dataset, filter).execute(db)).rows as Line[];
      const pages = {
        users: await readLines('users'),
        companies: await readLines('companies'),
        events: await readLines('events'),
      };
      return { cursor: await cursorOf(client), pages, positions: await this.#positions(client) };
    });
    for (const entity of ['users', 'companies'] as const)
      for (const line of pages[entity]) this.#apply(entity, line);
    for (const { event_id } of pages.events)
      this.#once(`event ${event_id}`, () => this.#events.add(event_id));
    for (const version of positions) this.#once(version);
    this.cursor = cursor;
  }

  /** Applies a line of an increment as a load of that line would. */
  #apply(entity: Entity, line: Line): void {
    const id = entity === 'users' ? line.user_id : (line.company_id ?? '');
    const profiles = this.#profiles[entity];
    if (line.removed === true) profiles.delete(id);
    else {
      const merged = { ...profiles.get(id)?.metadata, ...line.metadata };
      const metadata = Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null));
      profiles.set(id, entity === 'users' ? { metadata, company: line.company_id } : { metadata });
    }
  }

  /**
   * Returns the version of each profile in the increment, so that the test detects a version that
   * arrives twice.
   */
  async #positions(client: pg.ClientBase): Promise<string[]> {
    const { rows } = await client.query<{ version: string }>(
      `select concat_ws(' ', 'user', user_id, position) as version from sluice.users
       where environment_id = $1 and ($2::text is null or sluice.is_since(position, $2::pg_snapshot))`,
      [this.#environmentId, this.cursor],
    );
    return rows.map(({ version }) => version);
  }

  #once(what: string, then?: () => void): void {
    expect(this.#delivered, 'was delivered before').not.toContain(what);
    this.#delivered.add(what);
    then?.();
  }
}

async function cursorOf(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ cursor: string }>('select sluice.current_cursor() as cursor');
  return rows[0]?.cursor ?? '';
}

async function stored(system: System, environmentId: number) {
  const events = await system.db
    .selectFrom('events')
    .select('event_id')
    .where('environment_id', '=', environmentId)
    .execute();
  return {
    ...(await readProfiles(system, environmentId)),
    events: events.map(({ event_id }) => event_id).sort(),
  };
}

/**
 * Runs all writers at once. Until they end, updates the copy repeatedly, with pauses. Then updates
 * it once more.
 */
async function run(
  system: System,
  copy: Copy,
  environmentId: number,
  writers: Timetable,
  pauses: readonly number[],
) {
  let isWritten = false;
  const writing = Promise.all(
    writers.map(async (acts: readonly Act[]) => {
      for (const action of acts) await act(system, environmentId, action);
    }),
  ).finally(() => {
    isWritten = true;
  });
  const reading = async () => {
    for (let turn = 0; !isWritten; turn++) {
      await system.pool.query(sleep, [pauses[turn % pauses.length]]);
      await copy.take(system);
    }
  };
  await Promise.all([writing, reading()]);
  await copy.take(system);
}

const pauses = fc.array(fc.constantFrom(0, 5, 15, 50), { minLength: 1, maxLength: 5 });

describe('a copy that is kept by increments', () => {
  // proves: increments, increments-removed
  test('a copy by increments equals its source and gets nothing twice, for any writers at once, long transactions and rollbacks', async () => {
    const property = fc.asyncProperty(timetable, pauses, async (writers, waits) => {
      const environmentId = await newEnvironment(t.system);
      const copy = new Copy(environmentId);
      await run(t.system, copy, environmentId, writers, waits);
      expect(copy.content).toEqual(await stored(t.system, environmentId));
    });
    await fc.assert(property, { endOnFailure: false, interruptAfterTimeLimit: 120_000, numRuns: runs(72) });
  });
});
