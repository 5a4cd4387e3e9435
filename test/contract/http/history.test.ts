import { describe, expect, test } from 'vitest';
import type { ProfileHistory as History } from '../../../src/profiles/api.ts';
import { openServer, refusalOf, walkPages } from '../../support/servers/http.ts';

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

const readHistory = async (path: string): Promise<History> => (await server.json<History>(path)).body;

describe('GET …/history', () => {
  test('changes of a profile are paged, newest first, each once', async () => {
    for (const n of [1, 2, 3]) await identify('paged', { n });
    const job_id = await importCsv('user_id,e,company_id\npaged,"x\ny",acme\n');
    await identify('paged', { n: 4 });
    const whole = await readHistory('/v1/users/paged/history');
    expect(whole.data.map(({ before }) => before)).toEqual([
      { metadata: { n: 3, e: 'x\ny' }, company_id: 'acme' },
      { metadata: { n: 3 }, company_id: null },
      { metadata: { n: 2 }, company_id: null },
      { metadata: { n: 1 }, company_id: null },
    ]);
    expect(whole.data[1]).toMatchObject({
      at: expect.any(String),
      action: 'changed',
      by: 'load',
      job: { job_id, type: 'import', filename: 'people.csv' },
    });
    expect(whole.metadata).toEqual({
      cursor: { after: null, before: null },
      limit: 50,
      kept_since: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    const walked = await walkPages((cursor) =>
      readHistory(`/v1/users/paged/history?limit=2&cursor=${cursor}`),
    );
    expect(walked).toEqual(whole.data);
    const { headers } = await server.json(`/v1/users/paged/history?limit=1`);
    expect(headers.get('link')).toMatch(/\/v1\/users\/paged\/history\?limit=1&cursor=\w+>; rel="next"/);
    expect((await readHistory('/v1/companies/acme/history')).data).toEqual([]);
  });

  test('a page of changes is bounded in bytes', async () => {
    const value = 'x'.repeat(60_000);
    for (let n = 0; n < 12; n++) {
      await identify('large', Object.fromEntries([1, 2, 3].map((p) => [`p${p}`, `${n}${value}`])));
    }
    const first = await readHistory('/v1/users/large/history');
    expect(first.data.length).toBeGreaterThan(0);
    expect(first.data.length).toBeLessThan(11);
    expect(await walkPages((cursor) => readHistory(`/v1/users/large/history?cursor=${cursor}`))).toHaveLength(
      11,
    );
  });

  // proves: environments-apart
  test.each(['users', 'companies'])(
    'the history of %s that are unknown or of another environment is 404',
    async (entity) => {
      await identify('mine', {});
      expect(await refusalOf(server, `/v1/${entity}/nobody/history`)).toEqual([404, ['not_found']]);
      expect(await refusalOf(server, `/v1/${entity}/mine/history`, { key: other.key })).toEqual([
        404,
        ['not_found'],
      ]);
    },
  );

  test('a history refuses a cursor that no page returned', async () => {
    const path = '/v1/users/paged/history?cursor=nonsense';
    expect(await refusalOf(server, path)).toEqual([400, ['invalid_cursor']]);
  });
});
