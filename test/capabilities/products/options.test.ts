import { expect, test } from 'vitest';
import { type ErrorBody, openServer, refusalOf } from '../../support/servers/http.ts';

/*
 * The options of a load, and the rules for all records, also apply to records in the formats of
 * other products.
 */

const { server } = await openServer({ worker: true });

const ndjson = { 'content-type': 'application/x-ndjson' };
const csv = { 'content-type': 'text/csv' };

const load = (query: string, body: string) => server.load(body, { query, type: 'application/x-ndjson' });
const show = (jobId: string) => server.ended(jobId);
const metadataOf = async (id: string) =>
  (await server.json<{ metadata: object }>(`/v1/users/${id}`)).body.metadata;

// proves: source-options
test.each(['no preset', 'preset=segment', 'preset=userpilot'])(
  'company_from is refused with %s, which has no kinds of groups',
  async (option) => {
    const path = `/v1/imports?company_from=team${option === 'no preset' ? '' : `&${option}`}`;
    const request = { method: 'POST', body: '{"user_id":"u1"}\n', headers: ndjson };
    const { status, body } = await server.json<ErrorBody>(path, request);
    expect([status, body.errors]).toMatchObject([400, [{ details: 'company_from' }]]);
  },
);

test('types of columns are refused for a file of another product', async () => {
  const request = { method: 'POST', body: 'type,userId,a\nidentify,1,1\n', headers: csv };
  expect(await refusalOf(server, '/v1/imports?types=a%3Dnumber&preset=segment', request)).toEqual([
    400,
    ['invalid_field'],
  ]);
});

// proves: options-of
test('options_of reuses the preset of the earlier load, unless the request has a map', async () => {
  const line = '{"event":"a","properties":{"time":1760000000,"distinct_id":"p1","$insert_id":"1"}}\n';
  const { job_id } = await load('?preset=mixpanel', line);
  const optionsOf = `?options_of=${job_id}`;
  expect((await load(optionsOf, line.replace('"1"', '"2"'))).counts).toMatchObject({ inserted: 1 });
  expect((await load(`${optionsOf}&map=id%3Duser_id`, '{"id":"p2"}\n')).counts).toMatchObject({
    inserted: 1,
  });
});

// proves: mends
test('a mend is read as the product of its job, for rewritten and unchanged records', async () => {
  const calls = [
    { type: 'track', event: 'Paid', timestamp: 'yesterday', userId: 'p1', messageId: 'm1' },
    { type: 'alias', previousId: 'p0', userId: 'p2', messageId: 'm2' },
    { type: 'identify', userId: 'p3', traits: { plan: 'pro' }, messageId: 'm3' },
  ];
  const parent = await load('?preset=segment', calls.map((call) => `${JSON.stringify(call)}\n`).join(''));
  expect(parent).toMatchObject({ rejects: { by_code: { invalid_date: 1, unsupported_kind: 1 } } });
  const rejects = await server.fetch(`/v1/background_jobs/${parent.job_id}/rejects?format=ndjson`);
  const file = (await rejects.text())
    .replace('"yesterday"', '"2026-03-05T05:06:07Z"')
    .replace('"type":"alias"', '"type":"track","event":"Paid"');
  const mend = await load('', file);
  expect(mend).toMatchObject({ mends: parent.job_id, counts: { read: 2, rejected: 0 } });
  const { loaded_since } = (await show(parent.job_id)).rejects;
  expect(loaded_since).toEqual({ count: 2, jobs: [mend.job_id] });
  expect(await metadataOf('p2')).toEqual({});
});

test('a property without a name is dropped from a call, and a blank id is refused', async () => {
  const call = { userId: 'n1', type: 'identify', traits: { '': 1, seats: 2 } };
  const answer = await server.fetch('/v1/identify', { json: call });
  expect(answer.headers.get('sluice-dropped-properties')).toBe('1');
  expect(await metadataOf('n1')).toEqual({ seats: 2 });
  for (const [path, json] of [
    ['/v1/group', { userId: 'u', groupId: ' ' }],
    ['/v1/batch', { batch: [{ type: 'identify', userId: ' ' }] }],
  ] as const) {
    const { status, body } = await server.json<ErrorBody>(path, { json });
    expect([status, body.errors]).toMatchObject([
      400,
      [{ details: 'item 0', message: expect.stringContaining('blank') }],
    ]);
  }
});
