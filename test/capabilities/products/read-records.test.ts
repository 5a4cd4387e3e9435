import { expect, test } from 'vitest';
import { readProduct } from '../../../src/capabilities/products/read-records.ts';
import type { OurRecords } from '../../../src/capabilities/products/record.ts';
import type { Preset } from '../../../src/domain/source.ts';
import type { JsonObject } from '../../../src/formats/json-text.ts';

const readRecord = (product: Preset, record: JsonObject, companyFrom: string | null = null): OurRecords => {
  const records = readProduct[product]({ ...record }, { companyFrom });
  if ('code' in records) throw new Error(records.message);
  return records;
};
const refusalOf = (product: Preset, record: JsonObject, companyFrom: string | null = null) => {
  const records = readProduct[product]({ ...record }, { companyFrom });
  return 'code' in records ? records.code : null;
};

test('a group of Mixpanel is a company', () => {
  const group = { $group_key: 'company_id', $group_id: 'acme', $properties: { seats: 12 } };
  expect(readRecord('mixpanel', group)).toEqual([
    { event_type: 'identify_company', company_id: 'acme', metadata: { seats: 12 } },
  ]);
});

test('undocumented fields of an event become metadata', () => {
  const events = [
    readRecord('mixpanel', { event: 'A', more: 1, properties: { own: 2 } }),
    readRecord('segment', { type: 'track', event: 'A', more: 1, properties: { own: 2 } }),
    readRecord('amplitude', { event_type: 'A', more: 1, event_properties: { own: 2 } }),
    readRecord('posthog', { event: 'A', more: 1, properties: { own: 2 } }),
  ];
  for (const [event] of events) expect(event['metadata']).toEqual({ more: 1, own: 2 });
});

test('a call of RudderStack has its traits in the context, and an anonymous user', () => {
  const context = { traits: { plan: 'pro' }, groupId: 'g1' };
  expect(readRecord('segment', { type: 'identify', userId: '', anonymousId: 'a1', context })).toMatchObject([
    { event_type: 'identify_user', user_id: 'a1', company_id: 'g1', metadata: { plan: 'pro' } },
  ]);
  expect(readRecord('segment', { type: 'track', userId: '', anonymousId: 'a1' })).toMatchObject([
    { user_id: 'a1' },
  ]);
  const withTraits = { type: 'identify', userId: 'u1', traits: { plan: 'free' }, context };
  expect(readRecord('segment', withTraits)).toMatchObject([{ user_id: 'u1', metadata: { plan: 'free' } }]);
});

test('a record of another product than the preset is refused', () => {
  for (const product of Object.keys(readProduct) as Preset[])
    expect(refusalOf(product, { user_id: 'u', kind: 'x' })).toBe('unknown_event_type');
});

test.each<[string, Preset, JsonObject]>([
  ['alias of Segment', 'segment', { type: 'alias', userId: 'ada', previousId: 'old' }],
  ['$identify of Mixpanel', 'mixpanel', { event: '$identify', properties: { $identified_id: 'ada' } }],
  ['$create_alias of Mixpanel', 'mixpanel', { event: '$create_alias', properties: { alias: 'old' } }],
  ['$merge of Mixpanel', 'mixpanel', { event: '$merge', properties: { $distinct_ids: ['a', 'b'] } }],
  ['$create_alias of PostHog', 'posthog', { event: '$create_alias', distinct_id: 'ada' }],
  ['$merge_dangerously of PostHog', 'posthog', { event: '$merge_dangerously', distinct_id: 'ada' }],
  ['$identify of PostHog', 'posthog', { event: '$identify', distinct_id: 'a', properties: {} }],
])('%s joins two ids, and is refused', (_, product, record) => {
  expect(refusalOf(product, record)).toBe('unsupported_kind');
});

test('$identify of PostHog with properties changes its user', () => {
  const properties = {
    $anon_distinct_id: 'anon',
    $set: { plan: 'pro' },
    $set_once: { plan: 'free', by: 'x' },
  };
  expect(readRecord('posthog', { event: '$identify', distinct_id: 'ada', properties })).toEqual([
    { event_type: 'identify_user', user_id: 'ada', metadata: { plan: 'pro', by: 'x' } },
  ]);
});

test('a person of PostHog is a user with the id that is not anonymous', () => {
  const anonymous = '0190c1f0-6a7b-7c3d-8e9f-0a1b2c3d4e5f';
  const person = { id: 7, name: 'Ada', distinct_ids: [anonymous, 'ada'], properties: { plan: 'pro' } };
  expect(readRecord('posthog', person)).toEqual([
    { event_type: 'identify_user', user_id: 'ada', metadata: { plan: 'pro' } },
  ]);
  const row = { person_id: 'p', distinct_id: anonymous, properties: {}, is_deleted: false };
  expect(readRecord('posthog', row)).toMatchObject([{ user_id: anonymous }]);
  expect(refusalOf('posthog', { ...row, is_deleted: 'true' })).toBe('unknown_event_type');
});

test('an event of PostHog has properties of its person from all their places', () => {
  const event = {
    event: 'A',
    distinct_id: 'ada',
    person_properties: { plan: 'free', age: 36 },
    $set_once: { referrer: 'x', age: 1 },
    $set: { plan: 'team' },
    properties: { $set: { plan: 'pro' } },
  };
  expect(readRecord('posthog', event)).toMatchObject([
    { event_type: 'track', metadata: {} },
    { event_type: 'identify_user', metadata: { plan: 'pro', age: 36, referrer: 'x' } },
  ]);
});

test('the company in Mixpanel is the first of a list, which stays in the metadata', () => {
  const company_id = ['a', 'b'];
  const records = [
    readRecord('mixpanel', { event: 'A', properties: { company_id } }),
    readRecord('mixpanel', { $distinct_id: 'd', $properties: { company_id } }),
    readRecord('mixpanel', { $distinct_id: 'd', $set: { company_id } }),
    readRecord('mixpanel', { $distinct_id: 'd', $set: { team: company_id } }, 'team'),
  ];
  for (const [record] of records) {
    expect(record['company_id']).toBe('a');
    expect(Object.values(record['metadata'] as object)).toEqual([company_id]);
  }
});

test('a group of another kind than company_from is refused', () => {
  const mixpanel = { $group_key: 'team', $group_id: 'a', $properties: {} };
  expect(refusalOf('mixpanel', mixpanel, 'team')).toBeNull();
  expect(refusalOf('mixpanel', mixpanel, 'org')).toBe('unknown_event_type');
  const posthog = { event: '$groupidentify', properties: { $group_type: 'team', $group_key: 'a' } };
  expect(refusalOf('posthog', posthog, 'org')).toBe('unknown_event_type');
  const amplitude = { event_type: '$groupidentify', groups: { team: 'a' } };
  expect(refusalOf('amplitude', amplitude, 'org')).toBe('unknown_event_type');
});

test('the group of kind company is the company, and otherwise the first group', () => {
  const company = (groups: unknown) =>
    readRecord('posthog', { event: 'A', properties: { $groups: groups } })[0]['company_id'];
  expect(company({ team: 't', company: 'c' })).toBe('c');
  expect(company({ team: ['t', 's'] })).toBe('t');
  expect([company({}), company('x'), company(undefined)]).toEqual([undefined, undefined, undefined]);
});

test('an empty group or id is ignored, and its event is accepted', () => {
  const groups = { company: [], organization: 'o' };
  expect(readRecord('amplitude', { event_type: 'A', user_id: '', device_id: 'd', groups })).toMatchObject([
    { user_id: 'd', company_id: 'o' },
  ]);
  const properties = { $user_id: '', distinct_id: 'd', company_id: [''], $group_id: ['g'] };
  expect(readRecord('mixpanel', { event: 'A', properties })).toMatchObject([
    { user_id: 'd', company_id: 'g' },
  ]);
  const $groups = { company: '' };
  for (const [recordOfNone] of [
    readRecord('posthog', { event: 'A', distinct_id: 'd', properties: { $groups } }),
    readRecord('segment', { type: 'track', event: 'A', userId: 'd', context: { groupId: '' } }),
    readRecord('segment', { type: 'identify', userId: 'd', context: { groupId: null } }),
  ])
    expect([recordOfNone['user_id'], recordOfNone['company_id']]).toEqual(['d', undefined]);
});
