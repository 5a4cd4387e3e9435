import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { runs } from '../../support/runs.ts';
import { openRecordSite } from '../../support/servers/records.ts';

const path = '/v1/identify';
const site = await openRecordSite();
afterAll(() => site.close());

type Texts = Readonly<Record<string, string | null>>;
type Values = Readonly<Record<string, string | number | boolean | null>>;

/**
 * An identify request. Its users and companies have numbers. `undefined` means that the request
 * lacks the field. A company of `null` means that the user has no company.
 */
interface Identify {
  readonly user: number;
  readonly metadata: Texts | undefined;
  readonly beside: Texts;
  readonly company: CompanyOf | null | undefined;
}

interface CompanyOf {
  readonly id: number;
  /**
   * Where the request contains the company id: inside the company as `company_id` or `id`, or
   * outside the company (`beside`).
   */
  readonly by: 'company_id' | 'id' | 'beside';
  readonly metadata: Values | undefined;
  readonly beside: Values;
}

const name = fc.constantFrom('a', 'b', 'c', 'd');
const texts = fc.dictionary(name, fc.constantFrom('1', '2', '', 'ü', null), { maxKeys: 3 });
const values = fc.dictionary(name, fc.constantFrom<Values[string]>('1', 1, 0.5, true, null), { maxKeys: 3 });

function identifyOf(users: readonly number[], companies: readonly number[]): fc.Arbitrary<Identify> {
  const company = fc.record({
    id: fc.constantFrom(...companies),
    by: fc.constantFrom('company_id' as const, 'id' as const, 'beside' as const),
    metadata: fc.option(values, { nil: undefined }),
    beside: values,
  });
  return fc.record({
    user: fc.constantFrom(...users),
    metadata: fc.option(texts, { nil: undefined }),
    beside: texts,
    company: fc.oneof(fc.constant(undefined), fc.constant(null), company),
  });
}

const users = [0, 1, 2, 3];
/** One chain of requests. Each request waits for the previous one. */
const inTurn = fc.array(identifyOf(users, users), { maxLength: 6 }).map((chain) => [chain]);
/**
 * One chain of requests per user. All chains run concurrently. Users do not share companies, so the
 * order of writes to each row is known.
 */
const atOnce = fc.tuple(
  ...users.map((user) => fc.array(identifyOf([user], [user, user + 10]), { maxLength: 6 })),
);

test('any sequence of identifies ends as if each was done alone in its turn', async () => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(inTurn, atOnce), { maxLength: 5 }), async (batches) => {
      const run = `run${++count}-`;
      const model = new Model();
      for (const chains of batches) {
        if (chains.length === 1) await sendInTurn(run, chains.flat());
        else await Promise.all(chains.map((chain) => sendAtOnce(run, chain)));
        for (const each of chains.flat()) model.apply(run, each);
      }
      expect(await readTables(run)).toEqual({
        users: Object.fromEntries(model.users),
        companies: Object.fromEntries(model.companies),
      });
    }),
    { numRuns: runs(40) },
  );
});

async function sendInTurn(run: string, chain: readonly Identify[]): Promise<void> {
  for (const each of chain) await site.accept(path, recordOf(run, each));
}

async function sendAtOnce(run: string, chain: readonly Identify[]): Promise<void> {
  const statuses = await site.pipeline(chain.map((each) => [path, recordOf(run, each)] as const));
  expect(statuses).toEqual(chain.map(() => 202));
}

function recordOf(run: string, { user, metadata, beside, company }: Identify): object {
  const record = { user_id: `${run}u${user}`, ...beside, metadata };
  if (company === undefined || company === null) return { ...record, company };
  const id = `${run}c${company.id}`;
  const properties = { ...company.beside, metadata: company.metadata };
  return company.by === 'beside'
    ? { ...record, company_id: id, company: properties }
    : { ...record, company: { ...properties, [company.by]: id } };
}

type Stored = Record<string, unknown>;

/**
 * Tables in memory. They show what the database must contain if the requests to identify run one
 * after another.
 */
class Model {
  readonly users = new Map<string, { company: string | null; metadata: Stored }>();
  readonly companies = new Map<string, Stored>();

  apply(run: string, { user, metadata, beside, company }: Identify): void {
    const row = openRow(this.users, `${run}u${user}`, () => ({ company: null, metadata: {} }));
    putProperties(row.metadata, { ...beside, ...metadata });
    if (company === undefined) return;
    row.company = company === null ? null : `${run}c${company.id}`;
    if (row.company === null || company === null) return;
    const stored = openRow(this.companies, row.company, () => ({}));
    putProperties(stored, { ...company.beside, ...company.metadata });
  }
}

function openRow<T>(table: Map<string, T>, key: string, make: () => T): T {
  const row = table.get(key) ?? make();
  table.set(key, row);
  return row;
}

function putProperties(stored: Stored, properties: Values): void {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null) delete stored[key];
    else stored[key] = value;
  }
}

async function readTables(run: string): Promise<object> {
  const people = await site.sql<{ id: string; company: string | null; metadata: Stored }>(
    `select user_id as id, company_id as company, metadata from sluice.users where user_id like $1`,
    [`${run}%`],
  );
  const companies = await site.sql<{ id: string; metadata: Stored }>(
    `select company_id as id, metadata from sluice.companies where company_id like $1`,
    [`${run}%`],
  );
  return {
    users: Object.fromEntries(people.map(({ id, ...rest }) => [id, rest])),
    companies: Object.fromEntries(companies.map(({ id, metadata }) => [id, metadata])),
  };
}
