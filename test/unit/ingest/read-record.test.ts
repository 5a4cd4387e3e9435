import { expect, it } from 'vitest';
import { openRecord } from '../../../src/ingest/fields.ts';
import { readCompany, readEvent, readUser } from '../../../src/ingest/read-record.ts';

const seenTimes = { first_seen_at: '2026-01-01', last_seen_at: '2026-01-01' };
const body = (record: object) => openRecord(Buffer.from(JSON.stringify(record)));

it('the seen times are not properties of a single user or company', () => {
  const company = { id: 'c', size: '1', ...seenTimes };
  const user = readUser(body({ user_id: 'u', a: '1', ...seenTimes, company }), 1);
  expect(user).toMatchObject({ properties: { a: '1' }, company: { size: '1' } });
  expect(Object.keys({ ...user.properties, ...user.company })).toEqual(['a', 'size']);
  expect(readCompany(body({ company_id: 'c', a: 1, ...seenTimes }), 1).properties).toEqual({ a: 1 });
});

it('the seen times in metadata and in an event are ordinary properties', () => {
  const user = readUser(body({ user_id: 'u', metadata: seenTimes }), 1);
  expect(user.properties).toEqual(seenTimes);
  const event = readEvent(body({ user_id: 'u', event_name: 'e', ...seenTimes }), 1);
  expect(event).toMatchObject({ metadata: seenTimes });
});
