import { sql } from 'kysely';
import { pino } from 'pino';
import { afterAll, describe, expect, test } from 'vitest';
import { MAX_LISTED_NAMES } from '../../src/base/limits.ts';
import type { System } from '../../src/context.ts';
import type { DataType } from '../../src/domain/data-type.ts';
import type { Entity } from '../../src/domain/entity.ts';
import type { Load } from '../../src/load/read-store.ts';
import { KnownProperties } from '../../src/lookups/known-properties.ts';
import {
  type FileOptions,
  newEnvironment,
  readProfiles,
  runManually,
  startManually,
} from '../support/files/load-file.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();
const other = t.openAnother();
afterAll(() => other.close());

async function load(
  environmentId: number,
  content: string,
  options: FileOptions = {},
  system: System = t.system,
): Promise<Load> {
  const ended = await runManually(await startManually(system, environmentId, content, options));
  expect(ended.status).toBe('completed');
  return ended;
}

type Listed = Record<string, string>;

/** Excludes automatic properties. */
async function listProperties(environmentId: number, entity: Entity = 'users'): Promise<Listed> {
  const rows = await t.system.db
    .selectFrom('properties')
    .select(['key', 'data_type'])
    .where('environment_id', '=', environmentId)
    .where('entity', '=', entity)
    .where('is_auto_property', '=', false)
    .execute();
  return Object.fromEntries(rows.map((row) => [row.key, row.data_type]));
}

async function listedNames(environmentId: number): Promise<string[]> {
  const rows = await t.system.db
    .selectFrom('properties')
    .select('key')
    .where((eb) => eb.and({ environment_id: environmentId, entity: 'event_names' }))
    .execute();
  return rows.map(({ key }) => key).sort();
}

const lines = (...items: readonly object[]) => items.map((item) => `${JSON.stringify(item)}\n`).join('');
const types = (entries: Record<string, DataType>) => new Map(Object.entries(entries));
const named = (names: readonly string[]) => new Map(names.map((name) => [name, null]));

describe('listed properties', () => {
  test('a load lists the columns of a CSV as dates or strings, under their stored names', async () => {
    const environmentId = await newEnvironment(t.system);
    const content =
      'ID,company_id,Firma,metadata.age,since,n\nu,c,x,7,2024-01-01,1\nv,,,,2024-05-01T10:00:00Z,1\n';
    await load(environmentId, content, { map: { ID: 'user_id', Firma: 'firm_name' } });
    expect(await listProperties(environmentId)).toEqual({
      firm_name: 'string',
      age: 'string',
      since: 'date',
      n: 'string',
    });
    expect(await listProperties(environmentId, 'companies')).toEqual({});
    await load(environmentId, 'company_id,since\nc,2024-01-01\n');
    expect(await listProperties(environmentId, 'companies')).toEqual({ since: 'date' });
    const { rows } = await sql<{ display_name: string }>`
      select display_name from properties where environment_id = ${environmentId} and key = 'firm_name'`.execute(
      t.system.db,
    );
    expect(rows).toEqual([{ display_name: 'Firm Name' }]);
  });

  test('a load lists the properties of NDJSON records, of users and of their companies', async () => {
    const environmentId = await newEnvironment(t.system);
    const company = { id: 'c', name: 'C', metadata: { seats: 5, public: true } };
    await load(
      environmentId,
      lines(
        { user_id: 'u', age: 3, metadata: { day: '2024-01-01', tags: ['a'], gone: null }, company },
        { user_id: 'v', age: 'three', metadata: { day: '2024-01-01T10:00:00.5+02:00' } },
        { company_id: 'd', name: 7, since: '2024-01-01' },
      ),
    );
    expect(await listProperties(environmentId)).toEqual({ age: 'string', day: 'date', tags: 'string' });
    expect(await listProperties(environmentId, 'companies')).toEqual({
      name: 'string',
      seats: 'numeric',
      public: 'boolean',
      since: 'date',
    });
  });

  test('a load lists names before it writes their rows, and writes no rows while it cannot list them', async () => {
    const environmentId = await newEnvironment(t.system);
    const content = lines({ user_id: 'u', late: 1 });
    const manual = await startManually(t.system, environmentId, content);
    const state = async () => [
      await listProperties(environmentId),
      (await readProfiles(t.system, environmentId)).users,
    ];
    await sql`alter table properties add constraint refuses check (key <> 'late')`.execute(t.system.db);
    try {
      await manual.chunk(0);
      expect(await state()).toEqual([{}, {}]);
    } finally {
      await sql`alter table properties drop constraint refuses`.execute(t.system.db);
    }
    await runManually(manual);
    expect(await state()).toMatchObject([{ late: 'numeric' }, { u: { metadata: { late: 1 } } }]);
  });
});

describe('two processes', () => {
  test('two processes add and widen the same names at once in opposite orders, and neither fails', async () => {
    const environmentId = await newEnvironment(t.system);
    const count = 2_000;
    for (const [mine, theirs] of [
      ['numeric', 'numeric'],
      ['date', 'boolean'],
    ] as const) {
      const round = (type: DataType): [string, DataType][] =>
        Array.from({ length: count }, (_, n) => [`p${n}`, type]);
      const names = Array.from({ length: count }, (_, n) => `e${n}`);
      await Promise.all(
        [t.system, other].flatMap(({ knownProperties, db }, index) => {
          const properties = index === 0 ? round(mine) : round(theirs).reverse();
          const events = index === 0 ? names : names.toReversed();
          return [
            knownProperties.learn(db, environmentId, 'users', new Map(properties)),
            knownProperties.learn(db, environmentId, 'event_names', named(events)),
          ];
        }),
      );
      const list = await listProperties(environmentId);
      expect(Object.keys(list)).toHaveLength(count);
      expect(new Set(Object.values(list))).toEqual(new Set([mine === theirs ? mine : 'string']));
      expect(await listedNames(environmentId)).toEqual(names.sort());
      for (const { knownProperties } of [t.system, other]) {
        expect(knownProperties.knows(environmentId, 'users', 'p7', mine)).toBe(true);
        expect(knownProperties.knows(environmentId, 'event_names', 'e7', null)).toBe(true);
      }
    }
  });
});

describe('bounds', () => {
  const many = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => `p${String(from + n).padStart(6, '0')}`);

  test('a full list of properties takes no more names, warns once, and counts any other name as known', async () => {
    const messages: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => messages.push(line) });
    const knownProperties = new KnownProperties(log);
    const { db } = t.system;
    const environmentId = await newEnvironment(t.system);
    const noteAll = (names: readonly string[], type: DataType) =>
      knownProperties.learn(db, environmentId, 'users', new Map(names.map((name) => [name, type])));
    const room = MAX_LISTED_NAMES - 2;

    await noteAll(many(0, room - 10), 'numeric');
    expect(messages).toEqual([]);
    await noteAll(many(room - 20, 2 * MAX_LISTED_NAMES), 'numeric');
    const stored = await listProperties(environmentId);
    expect(Object.keys(stored).sort()).toEqual(many(0, room));
    await knownProperties.learn(db, environmentId, 'event_names', named(many(0, MAX_LISTED_NAMES + 1)));
    expect(await listedNames(environmentId)).toEqual(many(0, MAX_LISTED_NAMES));
    expect(messages.map((line) => JSON.parse(line).environment_id)).toEqual([environmentId]);

    await noteAll(many(room, 100), 'date');
    await knownProperties.learn(db, environmentId, 'event_names', named(['one more']));
    expect(knownProperties.knows(environmentId, 'users', 'one more', 'string')).toBe(true);

    // A new process reads a list that is already full. The process must still widen the types of
    // the listed properties.
    const fresh = new KnownProperties(log);
    const [first = '', last = ''] = [...many(0, 1), ...many(room - 1, 1)];
    const mixed = types({ 'one more': 'date', [first]: 'date' });
    await fresh.learn(db, environmentId, 'users', mixed);
    await fresh.learn(db, environmentId, 'users', types({ [last]: 'boolean', another: 'date' }));
    const after = await listProperties(environmentId);
    expect(Object.keys(after)).toHaveLength(room);
    expect([after[first], after[last], after[many(1, 1)[0] ?? '']]).toEqual(['string', 'string', 'numeric']);
  });
});
