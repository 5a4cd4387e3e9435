import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { describedApi } from '../../support/api-document.ts';
import { type ErrorBody, openServer } from '../../support/http.ts';

const { t, server } = await openServer();
const { document } = await describedApi();

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const operations = Object.entries(document.paths).flatMap(([path, known]) => {
  const named = Object.keys(known).map((name) => name.toUpperCase());
  const allow = [...named, ...(named.includes('GET') ? ['HEAD'] : [])].sort().join(', ');
  return methods
    .filter((method) => !named.includes(method) && !isOfAnother(method, path))
    .map((method) => [method, path, allow] as const);
});

/** `DELETE /v1/users/bulk_identify` deletes the user of that name, as `DELETE /v1/users/{user_id}` says. */
function isOfAnother(method: string, path: string): boolean {
  const others = Object.keys(document.paths).filter((other) => matches(other, path));
  return (
    method !== 'GET' && others.some((other) => document.paths[other]?.[method.toLowerCase()] !== undefined)
  );
}

function matches(template: string, path: string): boolean {
  const parts = path.split('/');
  const wanted = template.split('/');
  return (
    template !== path &&
    wanted.length === parts.length &&
    wanted.every((part, at) => part === parts[at] || (part.startsWith('{') && !parts[at]?.startsWith('{')))
  );
}

describe('a path of the document', () => {
  // proves: openapi
  test.each(operations)('answers 405 to %s %s, with the methods that it has', async (method, path, allow) => {
    const { status, headers, body } = await server.json<ErrorBody>(
      path.replace('{call}', 'page').replace(/\{\w+\}/g, 'x'),
      { method },
    );
    expect([status, headers.get('allow')]).toEqual([405, allow]);
    expect(body.errors[0]?.error_code).toBe('method_not_allowed');
  });
});

const gets = Object.entries(document.paths)
  .filter(([path, { get }]) => get !== undefined && !/live|files/.test(path))
  .map(([path]) =>
    path.replace('{call}', 'page').replace(/\{\w+\}/g, '01a1f879-8845-7223-9ca4-ceafb3823817'),
  );

// proves: openapi
test.each(gets)('GET %s ignores parameters that it does not know', async (path) => {
  const plain = await server.fetch(path);
  const more = await server.fetch(`${path}?colour=red&_=1&api_version=2`);
  expect(more.status).toBe(plain.status);
});

test.each(['validating', 'pending_refresh', 'failed,pending_refresh'])(
  'the list of jobs knows the state %s of the documented product, and has no job in it',
  async (state) => {
    for (const path of ['/v1/background_jobs', '/api/v1/analytics/exports/jobs']) {
      expect(await server.json(`${path}?status=${state}`)).toMatchObject({ status: 200, body: [] });
    }
  },
);

test('a company that is called as a path is still found', async () => {
  await server.fetch('/v1/companies/identify', { json: { company_id: 'identify', metadata: { a: 1 } } });
  const { status, body } = await server.json('/v1/companies/identify');
  expect([status, body]).toMatchObject([200, { company_id: 'identify' }]);
});

describe('a GET with a body', () => {
  /** As `https.request` of Node sends what is written to a GET: without a length. */
  const get = (path: string) =>
    new Promise<number>((resolve, reject) => {
      const asked = request(new URL(path, server.address), {
        method: 'GET',
        headers: { authorization: `Token ${t.key}`, 'content-type': 'application/json' },
      });
      asked.on('error', reject);
      asked.on('response', (response) => resolve(response.resume().statusCode ?? 0));
      asked.write(JSON.stringify({}));
      asked.end();
    });

  test.each(['/v1/background_jobs', '/api/v1/analytics/exports/lookups/segments'])(
    'that has no length is answered as without the body: %s',
    async (path) => {
      for (let i = 0; i < 20; i++) expect(await get(path)).toBe(200);
    },
  );

  test('is answered in full, and its connection closed', async () => {
    const connection = await server.connect();
    await connection.write(
      `GET /v1/background_jobs HTTP/1.1\r\nhost: x\r\nauthorization: Token ${t.key}\r\n\r\n{}`,
    );
    await connection.untilEnded();
    expect(connection.received).toMatch(/^HTTP\/1.1 200 .*connection: close.*\[\]$/is);
  });
});

test('headers that are too large are refused as the document says', async () => {
  const { status, body } = await server.json<ErrorBody>('/v1/background_jobs', {
    headers: { cookie: 'a'.repeat(20_000) },
  });
  expect([status, body.errors[0]?.error_code]).toEqual([431, 'headers_too_large']);
});
