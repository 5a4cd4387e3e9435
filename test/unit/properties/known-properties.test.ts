import { expect, it } from 'vitest';
import { KnownNames } from '../../../src/properties/known-properties.ts';

it('a name covers its own type and values that nobody looked at; string covers all', () => {
  const known = new KnownNames();
  known.remember({ name: 'n', type: 'numeric' });
  known.remember({ name: 's', type: 'string' });
  expect([known.covers('n', 'numeric'), known.covers('n', null), known.covers('n', 'date')]).toEqual([
    true,
    true,
    false,
  ]);
  expect([known.covers('s', 'date'), known.covers('s', 'string')]).toEqual([true, true]);
  expect([known.covers('other', null), known.covers('constructor', 'string')]).toEqual([false, false]);
});

it('once the list is full, unknown names are covered and known ones are still widened', () => {
  const known = new KnownNames();
  known.remember({ name: 'n', type: 'numeric' });
  known.isFull = true;
  expect([known.covers('other', 'date'), known.covers('n', 'date')]).toEqual([true, false]);
});
