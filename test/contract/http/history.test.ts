import { describe, expect, test } from 'vitest';
import type { ProfileHistory as History } from '../../../src/api/profile.ts';
import { openServer, refusalOf, walkPages } from '../../support/http.ts';

const { t, server } = await openServer({ worker: true });
const other = await t.addEnvironment('other');

async function identify(user_id: string, metadata: object): Promise<void> {
  expect((await server.fetch('/v1/identify', { json: { user_id, metadata } })).status).toBe(202);
}

async function importCsv(text: string): Promise<string> {
  const options = { method: 'POST', body: text, headers: { 'content-type': 'text/csv' } };
  const { body } = await server.json<{ job_id: string }>('/v1/imports?filename=people.csv', options);
  await t.ended(body.job_id);
  return body.job_id;
}

const read = async (path: string): Promise<History> => (await server.json<History>(path)).body;
const namesOf = ({ properties }: History['data'][number]) => properties.map(({ name }) => name);

describe('GET …/history', () => {
  test('answers changes in pages, the newest first, each once', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await identify('paged', { [name]: 1 });
    const job_id = await importCsv('user_id,e,company_id\npaged,"x\ny",acme\n');
    const whole = await read('/v1/users/paged/history');
    expect(whole.data.map(namesOf)).toEqual([['e'], ['d'], ['c'], ['b'], ['a']]);
    expect(whole.data[0]).toEqual({
      at: expect.any(String),
      action: 'changed',
      by: 'load',
      job: { job_id, type: 'import', filename: 'people.csv' },
      properties: [{ name: 'e', before: null, after: 'x\ny' }],
      company: { before: null, after: 'acme' },
    });
    expect(whole.metadata).toEqual({
      cursor: { after: null, before: null },
      limit: 50,
      complete_since: null,
    });
    const walked = await walkPages((cursor) => read(`/v1/users/paged/history?limit=2&cursor=${cursor}`));
    expect(walked).toEqual(whole.data);
    const { headers } = await server.json(`/v1/users/paged/history?limit=1`);
    expect(headers.get('link')).toMatch(/\/v1\/users\/paged\/history\?limit=1&cursor=\w+>; rel="next"/);
    const acme = await read('/v1/companies/acme/history');
    expect(acme.data).toMatchObject([{ action: 'made', properties: [], company: null }]);
  });

  test('a page ends at its bytes', async () => {
    const value = 'x'.repeat(60_000);
    for (let n = 0; n < 12; n++) {
      await identify('large', Object.fromEntries([1, 2, 3].map((p) => [`p${p}`, `${n}${value}`])));
    }
    const first = await read('/v1/users/large/history');
    expect(first.data.length).toBeGreaterThan(0);
    expect(first.data.length).toBeLessThan(12);
    expect(await walkPages((cursor) => read(`/v1/users/large/history?cursor=${cursor}`))).toHaveLength(12);
  });

  // proves: environments-apart
  test.each(['users', 'companies'])('%s: of nobody, and of another environment, is 404', async (entity) => {
    await identify('mine', {});
    expect(await refusalOf(server, `/v1/${entity}/nobody/history`)).toEqual([404, ['not_found']]);
    expect(await refusalOf(server, `/v1/${entity}/mine/history`, { key: other.key })).toEqual([
      404,
      ['not_found'],
    ]);
  });

  test('refuses a cursor that no page gave', async () => {
    const path = '/v1/users/paged/history?cursor=nonsense';
    expect(await refusalOf(server, path)).toEqual([400, ['invalid_cursor']]);
  });
});
