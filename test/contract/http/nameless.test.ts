import { describe, expect, test } from 'vitest';
import { type ErrorBody, form, openServer } from '../../support/servers/http.ts';

const { server } = await openServer({ worker: true });

const dropped = 'sluice-dropped-properties';
let users = 0;
const nextUser = () => `user-${++users}`;
const metadataOf = async (path: string) => (await server.json<{ metadata: object }>(path)).body.metadata;
const load = (content: string, filename: string) => server.load(form(content, { filename }));

describe('a property with an empty name', () => {
  test('a property with an empty name is dropped from a single record, and the answer counts it', async () => {
    const id = nextUser();
    const user = {
      user_id: id,
      '': 1,
      metadata: { '': 2, plan: 'pro' },
      company: { company_id: id, '': 3, size: 4 },
    };
    const answer = await server.fetch('/v1/identify', { json: user });
    expect([answer.status, answer.headers.get(dropped)]).toEqual([202, '3']);
    expect(await metadataOf(`/v1/users/${id}`)).toEqual({ plan: 'pro' });
    expect(await metadataOf(`/v1/companies/${id}`)).toEqual({ size: 4 });
    const event = {
      user_id: id,
      event_name: 'e',
      metadata: { '': { deep: 1 }, a: { '': 'inner names may be' } },
    };
    expect((await server.fetch('/v1/track', { json: event })).headers.get(dropped)).toBe('1');
    const plain = await server.fetch('/v1/identify', { json: { user_id: id, plan: 'free' } });
    expect(plain.headers.has(dropped)).toBe(false);
  });

  test('a property with an empty name is dropped from a batch, and the answer counts it', async () => {
    const a = nextUser();
    const b = nextUser();
    const batch = [a, b].map((user_id) => ({ type: 'identify', user_id, metadata: { '': 1, plan: 'pro' } }));
    const answer = await server.fetch('/v1/batch', { json: { batch } });
    expect([answer.status, answer.headers.get(dropped)]).toEqual([200, '2']);
    expect(await metadataOf(`/v1/users/${b}`)).toEqual({ plan: 'pro' });
  });

  test('a property with an empty name is dropped from a file, and the job counts it', async () => {
    const a = nextUser();
    const b = nextUser();
    const lines = [
      { user_id: a, '': 1, metadata: { '': 2, plan: 'pro' } },
      { user_id: b, 'metadata.': 3, company: { company_id: b, '': 4 } },
      { user_id: ' ', '': 5 },
    ];
    const ndjson = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    const expected = { status: 'completed', dropped_properties: 4 };
    expect(await load(ndjson, 'users.ndjson')).toMatchObject({
      ...expected,
      counts: { inserted: 2, rejected: 1 },
    });
    expect(await load(ndjson, 'again.ndjson')).toMatchObject({ counts: { unchanged: 2, rejected: 1 } });
    expect(await metadataOf(`/v1/users/${a}`)).toEqual({ plan: 'pro' });
    const csv = `user_id,metadata\n${a},"{"""":1,""plan"":""free""}"\n`;
    expect(await load(csv, 'users.csv')).toMatchObject({ status: 'completed', dropped_properties: 1 });
    expect(await metadataOf(`/v1/users/${a}`)).toEqual({ plan: 'free' });
  });
});

describe('an id or a name of white space', () => {
  test.each([
    ['/v1/identify', { user_id: ' ' }, 'user_id'],
    ['/v1/identify', { user_id: '\u00a0\t' }, 'user_id'],
    ['/v1/companies/identify', { company_id: '  ' }, 'company_id'],
    ['/v1/companies/identify', { company: { id: ' ' } }, 'company.id'],
    ['/v1/identify', { user_id: 'u', company: { company_id: ' ' } }, 'company.company_id'],
    ['/v1/track', { user_id: 'u', event_name: 'e', company_id: ' ' }, 'company_id'],
    ['/v1/track', { user_id: 'u', event_name: 'e', event_id: ' ' }, 'event_id'],
    ['/v1/track', { user_id: ' ', event_name: 'e' }, 'user_id'],
    ['/v1/track', { user_id: 'u', event_name: '\n' }, 'event_name'],
    ['/v1/batch', { batch: [{ type: 'track', user_id: 'u', event_name: ' ' }] }, 'item 0'],
  ])('%s refuses the blank id or name in %j', async (path, json, details) => {
    const { status, body } = await server.json<ErrorBody>(path, { json });
    expect([status, body.errors.map((each) => each.details)]).toEqual([400, [details]]);
    expect(body.errors[0]?.message).toContain('blank');
  });

  test('a file refuses records with blank ids', async () => {
    const events = { event_type: 'track', user_id: 'u', event_name: 'e' };
    const lines = [{ ...events, event_id: ' ' }, { ...events, company_id: '\t' }, events];
    const ndjson = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    expect(await load(ndjson, 'events.ndjson')).toMatchObject({ counts: { inserted: 1, rejected: 2 } });
    const csv = 'user_id,company_id\nspace," "\nnothing,\n';
    expect(await load(csv, 'blank.csv')).toMatchObject({ counts: { inserted: 1, rejected: 1 } });
  });
});
