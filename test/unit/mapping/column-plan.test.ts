import { describe, expect, it } from 'vitest';
import { InputError } from '../../../src/domain/errors.ts';
import { planColumns, planFile } from '../../../src/mapping/column-plan.ts';

const rolesOf = (columns: readonly string[], map: Record<string, string> = {}) =>
  planColumns(columns, map, 'auto').roles;

describe('a column that the map gives an empty name', () => {
  it('is passed over, and so may be several', () => {
    const columns = ['user_id', 'notes', 'fax', 'plan'];
    expect(rolesOf(columns, { notes: '', fax: '' })).toEqual(['id', 'ignored', 'ignored', 'property']);
    const events = planFile({ columns: ['event_type', ...columns], delimiter: ',' }, { notes: '' }, 'auto');
    expect(events.roles).toEqual(['event_type', 'user_id', 'ignored', 'property', 'property']);
    expect(() => rolesOf(['user_id'], { user_id: '' })).toThrow(InputError);
  });
});

describe('the columns of an exported CSV', () => {
  it('when a profile was seen is ignored, unless it is mapped to a property', () => {
    const columns = ['user_id', 'first_seen_at', 'last_seen_at'];
    expect(rolesOf(columns)).toEqual(['id', 'ignored', 'ignored']);
    expect(rolesOf(columns, { first_seen_at: 'signup' })).toEqual(['id', 'property', 'ignored']);
  });

  it('a property may have the name of a fixed column', () => {
    const columns = ['user_id', 'company_id', 'metadata.user_id', 'metadata.company_id', 'metadata.metadata'];
    const plan = planColumns([...columns, 'metadata', 'metadata.first_seen_at', 'first_seen_at'], {}, 'auto');
    expect(plan.entity).toBe('users');
    expect(plan.idIndex).toBe(0);
    expect(plan.roles).toEqual([
      ...['id', 'company', 'property', 'property', 'property'],
      ...['metadata', 'property', 'ignored'],
    ]);
    expect(plan.names.slice(2, 5)).toEqual(['user_id', 'company_id', 'metadata']);
  });

  it('a property may come once all the same', () => {
    expect(() => rolesOf(['user_id', 'a', 'metadata.a'])).toThrow(InputError);
    expect(() => rolesOf(['user_id', 'user_id'])).toThrow(InputError);
  });
});
