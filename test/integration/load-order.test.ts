import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { collidingTexts } from '../support/colliding-hashes.ts';
import { newEnvironment, readProfiles, runManually, startManually } from '../support/load-file.ts';
import { forgetReplays } from '../support/safeguards.ts';
import { expectTally, type OracleRecord, SerialOracle } from '../support/serial-oracle.ts';
import { systemOfFile } from '../support/system.ts';

const t = await systemOfFile();

type Item = Readonly<Record<string, unknown>>;

interface Case {
  readonly name: string;
  /** Loaded before; one record a line. */
  readonly stored: readonly Item[];
  /** One chunk each. */
  readonly file: readonly Item[];
}

const user = (metadata: object, more: object = {}): Item => ({ user_id: 'u', ...more, metadata });
const company = (metadata: object): Item => ({ company_id: 'c', metadata });
const member = (id: string, metadata: object): Item => ({
  user_id: id,
  metadata: {},
  company: { company_id: 'c', metadata },
});

const cases: readonly Case[] = [
  {
    name: 'every chunk sets the same property',
    stored: [],
    file: [user({ x: 1 }), user({ x: 2 }), user({ x: 3 })],
  },
  {
    name: 'the last chunk brings back what is stored',
    stored: [user({ x: 1 })],
    file: [user({ x: 2 }), user({ x: 1 })],
  },
  {
    name: 'chunks that change nothing stand around one that does',
    stored: [user({ x: 1, y: 1 })],
    file: [user({ x: 1 }), user({ x: 2 }), user({ y: 1 }), user({ x: 1 })],
  },
  {
    name: 'properties are set, removed and set again',
    stored: [user({ x: 1 })],
    file: [user({ x: null }), user({ x: 2, y: 1 }), user({ y: null }), user({ x: null, z: 1 })],
  },
  {
    name: 'a new user whose only property is removed again',
    stored: [],
    file: [user({ x: 1 }), user({ x: null }), user({})],
  },
  {
    name: 'a user moves between companies and leaves the last',
    stored: [user({}, { company_id: 'a' })],
    file: [user({}, { company_id: 'b' }), user({}, { company_id: null }), user({}, { company_id: 'a' })],
  },
  {
    name: 'a user leaves its company first and last',
    stored: [],
    file: [user({}, { company_id: null }), user({}, { company_id: 'b' }), user({}, { company_id: null })],
  },
  {
    name: 'every chunk sets the same property of a company',
    stored: [company({ x: 1 })],
    file: [company({ x: 2 }), company({ x: 3 }), company({ x: 1 })],
  },
  {
    name: 'users describe their company, and the last says what is stored',
    stored: [company({ x: 1 })],
    file: [member('u1', { x: 2 }), member('u2', { x: 1 })],
  },
  {
    name: 'users describe a new company',
    stored: [],
    file: [member('u1', { x: 2 }), member('u2', { x: 1, y: null }), member('u3', { x: null })],
  },
  {
    name: 'a company has a record of its own beside its users',
    stored: [],
    file: [member('u1', { x: 2 }), company({ x: 1 }), user({}, { company_id: 'c' }), company({ x: 3 })],
  },
  {
    name: 'a company is named by a user before its record comes',
    stored: [],
    file: [user({}, { company_id: 'c' }), company({ x: 1 }), company({})],
  },
  {
    name: 'a stored company is changed by a user and confirmed by its own record',
    stored: [company({ x: 1 })],
    file: [company({ x: 1 }), member('u1', { x: 2 })],
  },
];

// proves: one-by-one
describe('whatever the order in which its chunks are merged, a load ends as its records one by one', () => {
  test.each(cases)('$name', async ({ stored, file }) => {
    const outcomes = new Set<string>();
    for (const order of permutations(file.map((_, index) => index))) {
      const environment = await fill(stored);
      const oracle = new SerialOracle();
      oracle.load(stored.map(read));
      const expected = oracle.load(file.map(read));
      const load = await startManually(t.system, environment, text(file), { chunkBytes: 1 });
      expect(load.chunkCount).toBe(file.length);
      const ended = await runManually(load, order);
      expect(ended.status, `order ${order}: ${JSON.stringify(ended.failure)}`).toBe('completed');
      expect(await readProfiles(t.system, environment), `order ${order}`).toEqual(oracle.profiles());
      expectTally(ended.tally, expected);
      outcomes.add(JSON.stringify(ended.tally));
    }
    expect([...outcomes], 'one tally for all orders').toHaveLength(1);
  });
});

test('ids chosen so that their stored hashes are equal end as any others; all that is wrong is how many count as superseded', async () => {
  const ids = collidingTexts(3);
  const { rows } = await sql`
    select distinct hashtextextended(id, 0)::text from unnest(${ids}::text[]) id`.execute(t.system.db);
  expect([new Set(ids).size, rows.length]).toEqual([3, 1]);
  const [a = '', b = '', c = ''] = ids;
  const of = (user_id: string, metadata: object): Item => ({ user_id, metadata });
  const stored = [of(a, { x: 1 })];
  const file = [of(a, { x: 2 }), of(b, { x: 1 }), of(a, { x: 1 }), of(c, { x: 1 })];
  for (const order of permutations([0, 1, 2, 3])) {
    const environment = await fill(stored);
    const oracle = new SerialOracle();
    oracle.load([...stored, ...file].map(read));
    const ended = await runManually(
      await startManually(t.system, environment, text(file), { chunkBytes: 1 }),
      order,
    );
    expect([order, ended.status, ended.tally.read]).toEqual([order, 'completed', 4]);
    expect(await readProfiles(t.system, environment), `order ${order}`).toEqual(oracle.profiles());
  }
});

describe('these tests notice', () => {
  test('when keys written out of order are not replayed', async () => {
    const wrong: string[] = [];
    const remember = await forgetReplays(query);
    for (const { name, stored, file } of cases) {
      const environment = await fill(stored);
      const oracle = new SerialOracle();
      oracle.load([...stored, ...file].map(read));
      const load = await startManually(t.system, environment, text(file), { chunkBytes: 1 });
      await runManually(load, file.map((_, index) => index).reverse());
      const stands = await readProfiles(t.system, environment);
      if (!isDeepStrictEqual(stands, oracle.profiles())) wrong.push(name);
    }
    await remember();
    expect(wrong.length).toBeGreaterThan(cases.length / 2);
  });
});

const query = async (text: string, values: readonly unknown[] = []): Promise<unknown> =>
  t.system.pool.query(text, [...values]);

async function fill(stored: readonly Item[]): Promise<number> {
  const environmentId = await newEnvironment(t.system);
  if (stored.length > 0) await runManually(await startManually(t.system, environmentId, text(stored)));
  return environmentId;
}

function text(items: readonly Item[]): string {
  return items.map((item) => `${JSON.stringify(item)}\n`).join('');
}

function read(item: Item): OracleRecord {
  const {
    user_id,
    company_id,
    company: object,
    metadata,
  } = item as {
    user_id?: string;
    company_id?: string | null;
    company?: { company_id: string; metadata: Record<string, number | null> };
    metadata: Record<string, number | null>;
  };
  if (user_id === undefined) return { entity: 'companies', id: company_id ?? '', properties: metadata };
  const record = { entity: 'users', id: user_id, properties: metadata } as const;
  if (object !== undefined) {
    return { ...record, company: { id: object.company_id, properties: object.metadata } };
  }
  if (company_id === undefined) return record;
  return { ...record, company: company_id === null ? null : { id: company_id, properties: {} } };
}

function permutations(items: readonly number[]): number[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item) =>
    permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]),
  );
}
