import fc from 'fast-check';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { RulesRecord } from '../../../src/capabilities/rules/api.ts';
import { checkRules } from '../../../src/capabilities/rules/cli.ts';
import type { RulesDocument } from '../../../src/capabilities/rules/document.ts';
import { applyRules } from '../../../src/capabilities/rules/store.ts';
import { endedLoad, readProfiles, runManually, startManually } from '../../support/files/load-file.ts';
import { readEvents } from '../../support/oracles/events.ts';
import { runs } from '../../support/runs.ts';
import { type ErrorBody, openServer } from '../../support/servers/http.ts';
import { openTestSystem } from '../../support/servers/system.ts';

const { t, server } = await openServer({ worker: true });

const apply = async (file: string, key = t.key) => {
  const { status, body } = await server.json<RulesRecord & ErrorBody>('/v1/rules', {
    method: 'PUT',
    json: { file },
    key,
  });
  expect([status, body.errors]).toEqual([200, undefined]);
  return body;
};

interface Tenant {
  readonly key: string;
  readonly environment: { readonly environmentId: number };
}

/** Sends users in one of several ways. Returns the ids of the users that the service refused. */
type Way = (tenant: Tenant, users: readonly Record<string, unknown>[]) => Promise<string[]>;

const post = (path: string, key: string, body: string, type: string) =>
  server.json<{ job_id: string } & ErrorBody>(path, {
    method: 'POST',
    body,
    headers: { 'content-type': type },
    key,
  });

async function load(
  path: string,
  { key, environment }: Tenant,
  body: string,
  type: string,
): Promise<string[]> {
  const { body: answer } = await post(path, key, body, type);
  expect(answer.errors).toBeUndefined();
  await endedLoad(t.system, environment.environmentId, answer.job_id);
  const { body: rejects } = await server.json<{ data: { raw: string; error_code: string }[] }>(
    `/v1/background_jobs/${answer.job_id}/rejects`,
    { key },
  );
  expect(rejects.data.every(({ error_code }) => error_code === 'breaks_rule')).toBe(true);
  return rejects.data.map(({ raw }) => /u\d+/.exec(raw)?.[0] ?? raw);
}

const cell = (value: unknown) =>
  `"${(typeof value === 'string' ? value : JSON.stringify(value)).replaceAll('"', '""')}"`;

async function sendBatch(
  { key }: Tenant,
  users: readonly Record<string, unknown>[],
  itemOf: (user: Record<string, unknown>) => object,
): Promise<string[]> {
  const { body } = await server.json<
    { rejected?: { index: number; error_code: string }[] } & Partial<ErrorBody>
  >('/v1/batch', { json: { batch: users.map(itemOf) }, key });
  const { rejected = [], errors = [] } = body;
  expect([...rejected, ...errors].every(({ error_code }) => error_code === 'breaks_rule')).toBe(true);
  // If no record of a request is accepted, the whole request is refused.
  const refusedUsers = errors.length > 0 ? users : rejected.map(({ index }) => users[index]);
  return refusedUsers.map((user) => String(user?.['user_id']));
}

const ways: Readonly<Record<string, Way>> = {
  csv: (tenant, users) => {
    const names = [...new Set(users.flatMap((user) => Object.keys(user)))];
    const lines = users.map((user) =>
      names.map((name) => (user[name] == null ? '' : cell(user[name]))).join(),
    );
    return load('/v1/imports?format=csv', tenant, `${[names.join(), ...lines].join('\n')}\n`, 'text/csv');
  },
  ndjson: (tenant, users) =>
    load(
      '/v1/imports?format=ndjson',
      tenant,
      users.map((user) => `${JSON.stringify(user)}\n`).join(''),
      'application/x-ndjson',
    ),
  bulk: (tenant, users) =>
    load('/v1/users/bulk_identify', tenant, JSON.stringify({ users }), 'application/json'),
  single: async ({ key }, users) => {
    const refusedIds: string[] = [];
    for (const user of users) {
      const { event_type, ...json } = user;
      const path = event_type === undefined ? '/v1/identify' : '/v1/track';
      const { status, body } = await server.json<ErrorBody | null>(path, { json, key });
      if (status === 202) continue;
      expect(body?.errors.every(({ error_code }) => error_code === 'breaks_rule')).toBe(true);
      refusedIds.push(String(user['user_id']));
    }
    return refusedIds;
  },
  batch: (tenant, users) =>
    sendBatch(tenant, users, ({ event_type: type = 'identify', ...user }) => ({ type, ...user })),
  segment: (tenant, users) =>
    sendBatch(tenant, users, ({ user_id: userId, event_type: type, event_name: event, ...properties }) =>
      type === undefined
        ? { type: 'identify', userId, traits: properties }
        : { type, userId, event, properties: properties },
    ),
};

/** `bulk` sends arrays, which cannot contain events. */
const waysOf = (entity: 'users' | 'events') =>
  Object.entries(ways).filter(([name]) => entity === 'users' || name !== 'bulk');
const asEvent = (user: Record<string, unknown>, event_name = 'seen') => ({
  event_type: 'track',
  event_name,
  ...user,
});

type Value = string | number | boolean;

/**
 * Creates a rule. Uses only types for which a JSON value has the same result as its text in a CSV.
 */
const ruleOf = fc.oneof(
  fc.record(
    { type: fc.constant('text'), maxLength: fc.constant(3), pattern: fc.constant('^[a-z0-9é😀]*$') },
    { requiredKeys: ['type'] },
  ),
  fc.record(
    { type: fc.constantFrom('integer', 'number'), minimum: fc.constant(0), maximum: fc.constant(10) },
    { requiredKeys: ['type'] },
  ),
  fc.record({ type: fc.constant('text'), enum: fc.constant(['free', 'pro', '7']) }),
  fc.record({ type: fc.constant('boolean') }),
  fc.record({ type: fc.constant('date') }),
);
const remedy = fc.constantFrom('report', 'strip', 'refuse');
const rulesOf = fc.record({
  properties: fc.dictionary(
    fc.constantFrom('a', 'bb', 'ccc', 'dé'),
    fc.tuple(ruleOf, remedy, fc.boolean()).map(([rule, otherwise, required]) => ({
      ...rule,
      otherwise,
      ...(required && otherwise !== 'strip' && { required }),
    })),
  ),
  unknown: fc.constantFrom('allow', 'report', 'strip', 'refuse'),
});
const value = fc.constantFrom<Value>(
  ...[
    'free',
    'pro',
    'x',
    'ééé',
    '😀😀😀😀',
    'a"b',
    'tab\t',
    'True',
    'false',
    '7',
    '007',
    '12.50',
    '-3',
    '1e3',
    '12345678901234567890',
  ],
  ...[
    '2026-02-30',
    '2026-02-03',
    '2026-11-20T10:00:00Z',
    '2026-11-20T25:00:00Z',
    '1790000000',
    3,
    12,
    2.5,
    1_790_000_000,
    true,
  ],
);
const entityOf = fc.constantFrom('users', 'events');
const usersOf = fc.array(fc.dictionary(fc.constantFrom('a', 'bb', 'ccc', 'dé', 'other'), value), {
  minLength: 1,
  maxLength: 12,
});

const isDay = (text: string) => {
  const date = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === text.slice(0, 10);
};

/**
 * Converts a value to the type of a rule. Returns `undefined` if the value does not match the type.
 */
function convert(type: string, value: Value): Value | undefined {
  const text = String(value);
  if (type === 'text') return text;
  if (type === 'boolean')
    return ({ true: true, false: false } as Record<string, boolean>)[text.toLowerCase()];
  if (type !== 'date') {
    const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?(e\d+)?$/.test(text);
    return isNumber && (type === 'number' || Number.isInteger(Number(text))) ? Number(text) : undefined;
  }
  if (/^\d{10}$/.test(text)) return `${new Date(Number(text) * 1_000).toISOString().slice(0, 19)}.000000Z`;
  return /^\d{4}-\d\d-\d\d(T([01]\d|2[0-3]):\d\d:\d\dZ)?$/.test(text) && isDay(text) ? text : undefined;
}

interface OracleRule {
  readonly type: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly required?: boolean;
  readonly otherwise: string;
}

function fitsRule(rule: OracleRule, value: Value): boolean {
  if (rule.enum?.includes(String(value)) === false) return false;
  if (rule.minimum !== undefined && !(Number(value) >= rule.minimum)) return false;
  if (rule.maximum !== undefined && !(Number(value) <= rule.maximum)) return false;
  if (rule.maxLength !== undefined && Array.from(String(value)).length > rule.maxLength) return false;
  return rule.pattern === undefined || new RegExp(rule.pattern, 'u').test(String(value));
}

interface OracleValue {
  readonly value: Value;
  readonly isTyped: boolean;
}

/** Returns the values that must be stored for a record. `null` if the record must be refused. */
function oracle(
  { properties, unknown }: { readonly properties: object; readonly unknown: string },
  user: Readonly<Record<string, Value>>,
): Record<string, OracleValue> | null {
  const rules = properties as Readonly<Record<string, OracleRule>>;
  const values: Record<string, OracleValue> = {};
  for (const [name, value] of Object.entries(user)) {
    const rule = rules[name];
    const typedValue = rule === undefined ? value : convert(rule.type, value);
    const isKept =
      rule === undefined ? unknown === 'allow' : typedValue !== undefined && fitsRule(rule, typedValue);
    const otherwise = rule?.otherwise ?? unknown;
    if (!isKept && otherwise === 'refuse') return null;
    if (isKept || otherwise === 'report')
      values[name] = { value: typedValue ?? value, isTyped: rule !== undefined && typedValue !== undefined };
  }
  const isIncomplete = Object.entries(rules).some(
    ([name, { required, otherwise }]) =>
      required === true && otherwise === 'refuse' && user[name] === undefined,
  );
  return isIncomplete ? null : values;
}

/** Values without a type are compared as strings, because a CSV contains only strings. */
const compared = (expectedValues: Readonly<Record<string, OracleValue>>, metadata: object) =>
  Object.entries(metadata).map(([name, value]) => [
    name,
    expectedValues[name]?.isTyped === true ? value : String(value),
  ]);

async function storedOf(entity: 'users' | 'events', { environment: { environmentId } }: Tenant) {
  if (entity === 'users') return (await readProfiles(t.system, environmentId)).users;
  const events = await readEvents(t.system, environmentId);
  return Object.fromEntries(events.map((event) => [event.user, event]));
}

describe('the rules of an environment', () => {
  const tenants = new Map<string, Tenant>();
  beforeAll(async () => {
    for (const name of Object.keys(ways)) tenants.set(name, await t.addEnvironment(`rules-${name}`));
  });
  let serial = 0;

  // proves: rules-everywhere
  test('rules keep the same values and refuse the same records on every way', async () => {
    await fc.assert(
      fc.asyncProperty(entityOf, rulesOf, usersOf, async (entity, document, records) => {
        const users = records.map((properties) => ({ user_id: `u${++serial}`, ...properties }));
        const expectedUsers = users.map(
          ({ user_id, ...properties }) => [user_id, oracle(document, properties)] as const,
        );
        const recordsToSend = entity === 'users' ? users : users.map((user) => asEvent(user));
        for (const [name, send] of waysOf(entity)) {
          const tenant = tenants.get(name) as Tenant;
          await apply(JSON.stringify({ [entity]: document }), tenant.key);
          const refusedIds = await send(tenant, recordsToSend);
          expect([name, refusedIds.toSorted()]).toEqual([
            name,
            expectedUsers.flatMap(([id, values]) => (values === null ? [id] : [])).toSorted(),
          ]);
          const storedUsers = await storedOf(entity, tenant);
          for (const [id, properties] of expectedUsers) {
            const metadata = storedUsers[id]?.metadata as object | undefined;
            if (properties === null) {
              expect([name, id, metadata]).toEqual([name, id, undefined]);
              continue;
            }
            const values = Object.fromEntries(
              Object.entries(properties).map(([key, { value }]) => [key, value]),
            );
            const comparedValues = new Map(compared(properties, metadata ?? {}) as [string, unknown][]);
            expect([name, id, comparedValues]).toEqual([
              name,
              id,
              new Map(compared(properties, values) as [string, unknown][]),
            ]);
          }
        }
      }),
      { numRuns: runs(12) },
    );
  });

  for (const [name, send] of waysOf('events')) {
    // proves: rules-everywhere
    test(`rules store only listed events, with typed properties, as ${name}`, async () => {
      const tenant = await t.addEnvironment(`rules-events-${name}`);
      await apply('events:\n  names: [bought]\n  properties: { size: { type: integer } }\n', tenant.key);
      const eventsToSend = ['bought', 'sold'].map((event, at) =>
        asEvent({ user_id: `u${at}`, size: '3' }, event),
      );
      expect(await send(tenant, eventsToSend)).toEqual(['u1']);
      const events = await readEvents(t.system, tenant.environment.environmentId);
      expect(events.map(({ name, metadata }) => [name, (metadata as { size: unknown }).size])).toEqual([
        ['bought', 3],
      ]);
    });
  }

  // proves: rules-counted
  test('broken rules are counted in the job, and their rejects have a cause', async () => {
    const tenant = await t.addEnvironment('rules-counted');
    const file =
      'users:\n  properties:\n    plan: { enum: [free], otherwise: refuse }\n    seats: { type: integer }\n  unknown: strip\n';
    await apply(file, tenant.key);
    const csv = 'user_id,plan,seats,color\nu1,free,many,red\nu2,gold,3,\nu3,free,3,blue\n';
    const findings = [
      { entity: 'users', property: 'color', rule: 'unknown', otherwise: 'strip', records: 2 },
      { entity: 'users', property: 'seats', rule: 'type', otherwise: 'report', records: 1 },
    ];
    const { body } = await post('/v1/imports?format=csv', tenant.key, csv, 'text/csv');
    await endedLoad(t.system, tenant.environment.environmentId, body.job_id);
    const path = `/v1/background_jobs/${body.job_id}`;
    expect((await server.json(path, { key: tenant.key })).body).toMatchObject({ rules_version: 1, findings });
    const causes = await server.json<{ data: object[] }>(`${path}/rejects?group_by=cause`, {
      key: tenant.key,
    });
    expect(causes.body.data).toMatchObject([{ error_code: 'breaks_rule', column: 'plan', count: 1 }]);
  });

  test('a unique property accepts repeated values, and a check counts the profiles', async () => {
    const tenant = await t.addEnvironment('rules-checked');
    await apply('users:\n  properties: { email: { unique: true, otherwise: refuse } }\n', tenant.key);
    const users = [
      { user_id: 'u1', email: 'a' },
      { user_id: 'u2', email: 'a' },
      { user_id: 'u3', email: 'b' },
      { user_id: 'u4', email: null },
    ];
    expect(await ways['batch']?.(tenant, users)).toEqual([]);
    const document: RulesDocument = { users: { properties: { email: { unique: true } } } };
    const { findings } = await checkRules(t.system.db, tenant.environment.environmentId, document, 100);
    expect(findings.map(({ rule, records }) => [rule, records])).toEqual([['unique', 2]]);
  });

  // proves: rules-changed
  test('rules that change during a load do not affect it', async () => {
    const system = await openTestSystem();
    onTestFinished(() => system.close());
    const { environmentId } = system.environment;
    const strict: RulesDocument = {
      users: { properties: { plan: { enum: ['free'], otherwise: 'refuse' } } },
    };
    await applyRules(system.system, environmentId, strict, null);
    const csv = 'user_id,plan\nu1,free\nu2,gold\n';
    const running = await startManually(system.system, environmentId, csv, { chunkBytes: 1 });
    await running.chunk(0);
    await applyRules(system.system, environmentId, {}, null);
    await running.chunk(1);
    expect((await running.finish()).tally).toMatchObject({ inserted: 1, rejected: 1 });
    const laterLoad = await startManually(system.system, environmentId, csv, { chunkBytes: 1 });
    expect((await runManually(laterLoad)).tally).toMatchObject({ rejected: 0 });
  });

  // proves: rules-changed
  test('changed rules apply to records that are loaded again unchanged', async () => {
    const tenant = await t.addEnvironment('rules-changed');
    const csv = `user_id,plan\n${Array.from({ length: 20 }, (_, at) => `u${at},gold\n`).join('')}`;
    const loadAgain = () => load('/v1/imports?format=csv', tenant, csv, 'text/csv');
    expect(await loadAgain()).toEqual([]);
    expect(await loadAgain()).toEqual([]);
    await apply(
      'users:\n  properties: { plan: { type: text, maxLength: 3, otherwise: refuse } }\n',
      tenant.key,
    );
    await apply(
      'users:\n  properties: { plan: { enum: [gold], otherwise: strip }, seats: { type: integer } }\n',
      tenant.key,
    );
    expect(await loadAgain()).toEqual([]);
    await apply('users:\n  properties: { plan: { enum: [free, u0], otherwise: refuse } }\n', tenant.key);
    await post('/v1/imports?format=csv', tenant.key, 'user_id,plan\nx,free\n', 'text/csv');
    expect((await load('/v1/imports?format=csv', tenant, `${csv}y,free\n`, 'text/csv')).length).toBe(20);
  });

  test('rules are shown by version as applied, and equal rules keep their version', async () => {
    const { key } = await t.addEnvironment('rules-shown');
    const noRules = (await server.json<RulesRecord>('/v1/rules', { key })).body;
    expect(noRules).toMatchObject({ version: 0, applied_at: null, applied_by: null, document: {} });
    const file = 'users:\n  unknown: report\n';
    const firstRules = await apply(file, key);
    expect(firstRules).toMatchObject({ version: 1, file, document: { users: { unknown: 'report' } } });
    expect(firstRules.applied_by).toEqual(expect.any(String));
    expect(await apply(file, key)).toEqual(firstRules);
    expect((await apply('users: {}\n', key)).version).toBe(2);
  });
});
