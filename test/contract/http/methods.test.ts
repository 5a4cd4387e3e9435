import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { type ErrorBody, openServer } from '../../support/servers/http.ts';

const { t, server } = await openServer();

test.each(['validating', 'pending_refresh', 'failed,pending_refresh'])(
  'the list of jobs accepts the state %s of the documented product, and no job has it',
  async (state) => {
    for (const path of ['/v1/background_jobs', '/api/v1/analytics/exports/jobs']) {
      expect(await server.json(`${path}?status=${state}`)).toMatchObject({ status: 200, body: [] });
    }
  },
);

test('a company whose id is a path is readable', async () => {
  await server.fetch('/v1/companies/identify', { json: { company_id: 'identify', metadata: { a: 1 } } });
  const { status, body } = await server.json('/v1/companies/identify');
  expect([status, body]).toMatchObject([200, { company_id: 'identify' }]);
});

describe('a GET with a body', () => {
  /**
   * Sends a GET request as Node's `https.request` does, which sends the body but not its length.
   */
  const get = (path: string) =>
    new Promise<number>((resolve, reject) => {
      const outgoing = request(new URL(path, server.address), {
        method: 'GET',
        headers: { authorization: `Token ${t.key}`, 'content-type': 'application/json' },
      });
      outgoing.on('error', reject);
      outgoing.on('response', (response) => resolve(response.resume().statusCode ?? 0));
      outgoing.write(JSON.stringify({}));
      outgoing.end();
    });

  test.each(['/v1/background_jobs', '/api/v1/analytics/exports/lookups/segments'])(
    'a GET of %s with a body of unstated length is answered as without the body',
    async (path) => {
      for (let i = 0; i < 20; i++) expect(await get(path)).toBe(200);
    },
  );

  test('a GET with a body is answered in full, and its connection closed', async () => {
    const connection = await server.connect();
    await connection.write(
      `GET /v1/background_jobs HTTP/1.1\r\nhost: x\r\nauthorization: Token ${t.key}\r\n\r\n{}`,
    );
    await connection.untilEnded();
    expect(connection.received).toMatch(/^HTTP\/1.1 200 .*connection: close.*\[\]$/is);
  });
});

test('headers that are too large are refused as the document specifies', async () => {
  const { status, body } = await server.json<ErrorBody>('/v1/background_jobs', {
    headers: { cookie: 'a'.repeat(20_000) },
  });
  expect([status, body.errors[0]?.error_code]).toEqual([431, 'headers_too_large']);
});
