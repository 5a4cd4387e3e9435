import { sql } from 'kysely';
import { beforeEach, expect, test, vi } from 'vitest';
import type { RulesDocument } from '../../../src/capabilities/rules/document.ts';
import { rules } from '../../../src/capabilities/rules/rules.ts';
import { applyRules } from '../../../src/capabilities/rules/store.ts';
import type { BatchItem, ItemRecord } from '../../../src/ingest/records.ts';
import { inTransaction } from '../../../src/postgres/database.ts';
import {
  newEnvironment,
  readProfiles,
  runManually,
  startManually,
  withoutQueue,
} from '../../support/files/load-file.ts';
import { systemOfFile } from '../../support/servers/system.ts';
import { sendRecord, untilItWaits, untilStatementWaits } from '../../support/servers/write-users.ts';

const t = await systemOfFile();
let environmentId: number;
beforeEach(async () => {
  environmentId = await newEnvironment(t.system);
});

const strict = {
  properties: { plan: { enum: ['free'], otherwise: 'refuse' }, age: { type: 'integer' } },
} as const;
const document: RulesDocument = { users: strict, companies: strict, events: strict };
/** Applies rules as another process would. The server of this test is not notified. */
const applyElsewhere = (to = environmentId) => applyRules(t.system, to, document, null);
const broken = { problems: [{ code: 'breaks_rule', details: 'plan' }] };

const itemOf = (
  entity: ItemRecord['entity'],
  id: string,
  plan: string,
  ownerId = environmentId,
): ItemRecord => {
  const properties = { plan, age: '7' };
  const shared = { environmentId: ownerId, companyId: null, marked: false, bytes: 10 };
  if (entity === 'users') return { entity, record: { ...shared, userId: id, properties, company: {} } };
  if (entity === 'companies') return { entity, record: { ...shared, companyId: id, properties } };
  const event = { userId: id, eventName: 'seen', eventId: null, insertedAt: null, metadata: properties };
  return { entity, record: { ...shared, ...event } };
};
const send = (item: ItemRecord, key: string | null = null) => sendRecord(t.system.ingest, item, key);
const readUsers = async (of = environmentId) => (await readProfiles(t.system, of)).users;

// proves: rules-everywhere
test.each(['users', 'companies', 'events'] as const)(
  'first rules apply to single records of %s',
  async (entity) => {
    await send(itemOf(entity, 'early', 'gold'));
    await applyElsewhere();
    const answers = await Promise.allSettled([
      send(itemOf(entity, 'u1', 'free')),
      send(itemOf(entity, 'u2', 'gold')),
      send(itemOf(entity, 'u3', 'gold'), `key of ${entity}`),
    ]);
    expect(answers).toMatchObject([{ status: 'fulfilled' }, { reason: broken }, { reason: broken }]);
  },
);

// proves: rules-everywhere
test('first rules apply to the items of a batch, and change their values', async () => {
  const items = ['free', 'gold', 'free'].map(
    (plan, index): BatchItem => ({ index, ...itemOf('users', `u${index}`, plan) }),
  );
  await applyElsewhere();
  const readItems = async () => ({ items, rejected: [] });
  const answer = await t.system.ingest.batch(environmentId, readItems, 10, null);
  expect(answer).toMatchObject({ accepted: 2, rejected: [{ index: 1, error_code: 'breaks_rule' }] });
  expect(Object.values(await readUsers()).map(({ metadata }) => metadata)).toEqual([
    { plan: 'free', age: 7 },
    { plan: 'free', age: 7 },
  ]);
});

// proves: rules-everywhere
test('first rules apply to records that share a statement with known rules', async () => {
  const otherId = await newEnvironment(t.system);
  await applyElsewhere(otherId);
  await expect(send(itemOf('users', 'u1', 'gold', otherId))).rejects.toMatchObject(broken);
  await applyElsewhere();
  const answers = await Promise.allSettled([
    send(itemOf('users', 'u1', 'free', otherId)),
    send(itemOf('users', 'u1', 'gold')),
    send(itemOf('users', 'u2', 'free')),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(await readUsers()).toMatchObject({ u2: { metadata: { plan: 'free', age: 7 } } });
});

// proves: rules-everywhere
test('first rules wait for a writer that has found no rules and has not written yet', async () => {
  await send(itemOf('users', 'held', 'gold'));
  const { sent, done } = await inTransaction(t.system.pool, async ({ db }) => {
    await sql`select from users where environment_id = ${environmentId} for update`.execute(db);
    const sent = send(itemOf('users', 'held', 'silver'));
    await untilStatementWaits(t.system);
    return { sent, ...(await untilItWaits(t.system, applyElsewhere)) };
  });
  await sent;
  await done;
  expect(await readUsers()).toMatchObject({ held: { metadata: { plan: 'silver' } } });
  await expect(send(itemOf('users', 'held', 'gold'))).rejects.toMatchObject(broken);
});

test('requests and loads of environments without rules do not call the rules', async () => {
  const { records } = rules;
  if (records === undefined) throw new Error('the capability judges no records');
  const spies = (['current', 'ofLoad', 'accept', 'forget'] as const).map((name) => vi.spyOn(records, name));
  await send(itemOf('users', 'u1', 'gold'));
  const content = 'user_id,plan\nu1,gold\nu2,gold\n';
  const ended = await runManually(
    await startManually(withoutQueue(t.system), environmentId, content, { chunkBytes: 1 }),
  );
  expect(ended).toMatchObject({ status: 'completed', tally: { rejected: 0 } });
  for (const spy of spies) expect(spy).not.toHaveBeenCalled();
  await applyElsewhere();
  await expect(send(itemOf('users', 'u1', 'gold'))).rejects.toMatchObject(broken);
  for (const spy of spies) spy.mockRestore();
});
