import { expect, test } from 'vitest';
import type { Preset } from '../../../src/domain/load.ts';
import { readPreset } from '../../../src/mapping/presets.ts';

test('a profile of Mixpanel is a user without the signs of reserved properties', () => {
  const record = {
    $distinct_id: 'd1',
    $properties: { $email: 'a@example.com', $last_seen: '2026-03-04T05:06:07' },
  };
  expect(readPreset.mixpanel(record, null)?.record).toEqual({
    ...{ event_type: 'identify_user', user_id: 'd1', inserted_at: '2026-03-04T05:06:07' },
    metadata: { email: 'a@example.com' },
  });
});

test('a group of Mixpanel is a company that was there since it was made', () => {
  const $created = '2026-03-04T05:06:07';
  const group = { $group_key: 'company_id', $group_id: 'acme', $properties: { $created, seats: 12 } };
  const company = { event_type: 'identify_company', company_id: 'acme' };
  expect(readPreset.mixpanel(group, null)).toMatchObject({
    record: { ...company, metadata: { seats: 12 } },
    profiles: [{ record: { ...company, inserted_at: $created }, fillsIn: false }],
  });
});

test('fields of an event that its product does not document become metadata', () => {
  const read = [
    readPreset.mixpanel({ event: 'A', more: 1, properties: { own: 2 } }, null),
    readPreset.segment({ type: 'track', event: 'A', more: 1, properties: { own: 2 } }, null),
    readPreset.amplitude({ event_type: 'A', more: 1, event_properties: { own: 2 } }, null),
    readPreset.posthog({ event: 'A', more: 1, properties: { own: 2 } }, null),
  ];
  for (const given of read) expect(given?.record['metadata']).toEqual({ more: 1, own: 2 });
});

test('a group call of Segment is a company, or the user in it', () => {
  const shared = { type: 'group', groupId: 'g1', traits: { size: 5 } };
  expect(readPreset.segment({ ...shared, userId: 'u1' }, null)?.record).toMatchObject({
    ...{ event_type: 'identify_user', user_id: 'u1', company: { company_id: 'g1', metadata: { size: 5 } } },
  });
  expect(readPreset.segment(shared, null)?.record).toMatchObject({
    ...{ event_type: 'identify_company', company_id: 'g1', metadata: { size: 5 } },
  });
});

test('a call of RudderStack has its traits in the context, and no user who is anonymous', () => {
  const context = { traits: { plan: 'pro' }, groupId: 'g1' };
  expect(
    readPreset.segment({ type: 'identify', userId: '', anonymousId: 'a1', context }, null)?.record,
  ).toMatchObject({
    ...{ event_type: 'identify_user', user_id: 'a1', company_id: 'g1', metadata: { plan: 'pro' } },
  });
  expect(readPreset.segment({ type: 'track', userId: '', anonymousId: 'a1' }, null)?.record).toMatchObject({
    user_id: 'a1',
  });
  const both = { type: 'identify', userId: 'u1', traits: { plan: 'free' }, context };
  expect(readPreset.segment(both, null)?.record).toMatchObject({ user_id: 'u1', metadata: { plan: 'free' } });
});

test('a record that is none of the product is none', () => {
  for (const read of Object.values(readPreset))
    expect(read({ user_id: 'u', type: 'alias' }, null)).toBeNull();
});

test('a person of PostHog is a user by the id that is no anonymous one, there since it was made', () => {
  const anonymous = '0190c1f0-6a7b-7c3d-8e9f-0a1b2c3d4e5f';
  const person = {
    ...{ id: 7, name: 'Ada', distinct_ids: [anonymous, 'ada'], created_at: '2026-03-04T05:06:07.000Z' },
    properties: { plan: 'pro' },
  };
  const user = { event_type: 'identify_user', user_id: 'ada' };
  expect(readPreset.posthog(person, null)).toEqual({
    record: { ...user, metadata: { plan: 'pro' } },
    profiles: [{ record: { ...user, inserted_at: person.created_at, metadata: {} }, fillsIn: false }],
    links: [anonymous, 'ada'].map((alias) => ({ alias, userId: 'ada', linking: 'add' })),
  });
  const row = { person_id: 'p', distinct_id: anonymous, properties: {}, is_deleted: false };
  expect(readPreset.posthog(row, null)?.record).toMatchObject({ user_id: anonymous });
  expect(readPreset.posthog({ ...row, is_deleted: 'true' }, null)).toBeNull();
});

test('an event of PostHog has the properties of its person, and what it sets beside its properties', () => {
  const event = {
    ...{ event: 'A', distinct_id: 'ada', person_properties: { plan: 'free', age: 36 } },
    ...{ $set_once: { referrer: 'x' }, $set: { plan: 'team' }, properties: { $set: { plan: 'pro' } } },
  };
  const found = readPreset.posthog(event, null);
  expect(found?.record['metadata']).toEqual({});
  expect(found?.profiles).toMatchObject([
    { record: { metadata: { referrer: 'x' } }, fillsIn: true },
    { record: { metadata: { plan: 'pro', age: 36 } }, fillsIn: false },
  ]);
});

test('the company in Mixpanel is the first of a list, in events, people and their updates, which keep what is behind it', () => {
  const company_id = ['a', 'b'];
  const found = [
    readPreset.mixpanel({ event: 'A', properties: { company_id } }, null),
    readPreset.mixpanel({ $distinct_id: 'd', $properties: { company_id } }, null),
    readPreset.mixpanel({ $distinct_id: 'd', $set: { company_id } }, null),
    readPreset.mixpanel({ $distinct_id: 'd', $set: { team: company_id } }, 'team'),
  ].map((each) => each?.record);
  expect(found.map((each) => each?.['company_id'])).toEqual(['a', 'a', 'a', 'a']);
  for (const each of found) expect(Object.values(each?.['metadata'] ?? {})).toEqual([company_id]);
  const group = { $group_key: 'team', $group_id: 'a', $properties: {} };
  expect([readPreset.mixpanel(group, 'team') === null, readPreset.mixpanel(group, 'org')]).toEqual([
    false,
    null,
  ]);
});

test('a company is the group of a type that says so, else the first', () => {
  const company = (groups: unknown) =>
    readPreset.posthog({ event: 'A', properties: { $groups: groups } }, null)?.record['company_id'];
  expect(company({ team: 't', company: 'c' })).toBe('c');
  expect(company({ team: ['t', 's'] })).toBe('t');
  expect([company({}), company('x'), company(undefined)]).toEqual([undefined, undefined, undefined]);
});

test('a group or id that is empty says nothing, and refuses no event', () => {
  const read = (preset: Preset, record: object) => readPreset[preset]({ ...record }, null)?.record;
  const groups = { company: [], organization: 'o' };
  expect(read('amplitude', { event_type: 'A', user_id: '', device_id: 'd', groups })).toMatchObject({
    ...{ user_id: 'd', company_id: 'o' },
  });
  const properties = { $user_id: '', distinct_id: 'd', company_id: [''], $group_id: ['g'] };
  expect(read('mixpanel', { event: 'A', properties })).toMatchObject({ user_id: 'd', company_id: 'g' });
  const $groups = { company: '' };
  for (const none of [
    read('posthog', { event: 'A', distinct_id: 'd', properties: { $groups } }),
    read('segment', { type: 'track', event: 'A', userId: 'd', context: { groupId: '' } }),
    read('segment', { type: 'identify', userId: 'd', context: { groupId: null } }),
  ])
    expect([none?.['user_id'], none?.['company_id']]).toEqual(['d', undefined]);
});
