import { expect, test } from 'vitest';
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

test('a company is the group of a type that says so, else the first', () => {
  const company = (groups: unknown) =>
    readPreset.posthog({ event: 'A', properties: { $groups: groups } }, null)?.record['company_id'];
  expect(company({ team: 't', company: 'c' })).toBe('c');
  expect(company({ team: ['t', 's'] })).toBe('t');
  expect([company({}), company('x'), company(undefined)]).toEqual([undefined, undefined, undefined]);
});
