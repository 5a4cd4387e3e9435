import { expect, it } from 'vitest';
import { InputError } from '../../../src/base/errors.ts';
import { planFile } from '../../../src/load/map/column-plan.ts';

const rolesOf = (columns: readonly string[], map: Record<string, string> = {}) =>
  planFile({ columns }, map, 'auto').roles;

it('several columns with an empty name in the map are ignored', () => {
  const columns = ['user_id', 'notes', 'fax', 'plan'];
  expect(rolesOf(columns, { notes: '', fax: '' })).toEqual(['user_id', 'ignored', 'ignored', 'property']);
  const events = planFile({ columns: ['event_type', ...columns] }, { notes: '' }, 'auto');
  expect(events.roles).toEqual(['event_type', 'user_id', 'ignored', 'property', 'property']);
  expect(() => rolesOf(['user_id'], { user_id: '' })).toThrow(InputError);
});

it('the times when a profile was seen are ignored unless mapped to a property', () => {
  const columns = ['user_id', 'first_seen_at', 'last_seen_at'];
  expect(rolesOf(columns)).toEqual(['user_id', 'ignored', 'ignored']);
  expect(rolesOf(columns, { first_seen_at: 'signup' })).toEqual(['user_id', 'property', 'ignored']);
});

it('a prefixed property may have the name of a fixed column', () => {
  const columns = ['user_id', 'company_id', 'metadata.user_id', 'metadata.company_id', 'metadata.metadata'];
  const plan = planFile(
    { columns: [...columns, 'metadata', 'metadata.first_seen_at', 'first_seen_at'] },
    {},
    'auto',
  );
  expect(plan.entity).toBe('users');
  expect(plan.roles).toEqual([
    ...['user_id', 'company_id', 'property', 'property', 'property'],
    ...['metadata', 'property', 'ignored'],
  ]);
  expect(plan.names.slice(2, 5)).toEqual(['user_id', 'company_id', 'metadata']);
});

it('a property may be present only once, with or without its prefix', () => {
  expect(() => rolesOf(['user_id', 'a', 'metadata.a'])).toThrow(InputError);
  expect(() => rolesOf(['user_id', 'user_id'])).toThrow(InputError);
});
