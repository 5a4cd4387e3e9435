import { describe, expect, it } from 'vitest';
import { openRecord } from '../../../src/ingest/fields.ts';
import { readCompany, readEvent, readUser } from '../../../src/ingest/read-record.ts';

const seen = { first_seen_at: '2026-01-01', last_seen_at: '2026-01-01' };
const body = (record: object) => openRecord(Buffer.from(JSON.stringify(record)));

describe('when a profile was seen', () => {
  it('is no property of a single user or company', () => {
    const company = { id: 'c', size: '1', ...seen };
    const user = readUser(body({ user_id: 'u', a: '1', ...seen, company }), 1);
    expect(user).toMatchObject({ properties: { a: '1' }, company: { size: '1' } });
    expect(Object.keys({ ...user.properties, ...user.company })).toEqual(['a', 'size']);
    expect(readCompany(body({ company_id: 'c', a: 1, ...seen }), 1).properties).toEqual({ a: 1 });
  });

  it('is a property in metadata, and of an event', () => {
    const user = readUser(body({ user_id: 'u', metadata: seen }), 1);
    expect(user.properties).toEqual(seen);
    const event = readEvent(body({ user_id: 'u', event_name: 'e', ...seen }), 1);
    expect(event).toMatchObject({ metadata: seen });
  });
});
