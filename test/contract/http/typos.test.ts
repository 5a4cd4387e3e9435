import { expect, test } from 'vitest';
import { type ErrorBody, openServer } from '../../support/servers/http.ts';

const { server } = await openServer();

test.each([
  ['/v1/background_jobs?staus=failed', 'staus', 'status'],
  ['/v1/users?serach=x', 'serach', 'search'],
])('GET %s is refused, and the answer names the intended parameter', async (path, name, meant) => {
  const { status, body } = await server.json<ErrorBody>(path);
  expect([status, body.errors]).toEqual([
    400,
    [
      expect.objectContaining({
        error_code: 'invalid_field',
        message: `${name} is not a parameter. Did you mean ${meant}?`,
        details: name,
      }),
    ],
  ]);
});

test('an unknown parameter is ignored, and a header names it', async () => {
  const answer = await server.fetch(
    `/v1/background_jobs?_=17&utm_campaign=x&${encodeURIComponent('a\r\nb')}=1&limit=1`,
  );
  expect([answer.status, answer.headers.get('ignored-parameters')]).toEqual([
    200,
    '_, utm_campaign, a%0D%0Ab',
  ]);
  const plain = await server.fetch('/v1/background_jobs?limit=1');
  expect([plain.status, plain.headers.get('ignored-parameters')]).toEqual([200, null]);
});

test('a misspelt field of an export is refused with the intended name, and an unknown field is ignored', async () => {
  const post = (json: object) =>
    server.json<ErrorBody & { warnings?: object[] }>('/api/v1/analytics/exports', { method: 'POST', json });
  const { status, body } = await post({ evnt_type: ['users'] });
  expect([status, body.errors]).toEqual([
    400,
    [
      expect.objectContaining({
        message: 'There is no such field; did you mean event_type?',
        details: 'evnt_type',
      }),
    ],
  ]);
  const other = await post({ colour: 'red' });
  expect([other.status, other.body.warnings]).toEqual([
    201,
    [{ message: 'There is no such field; it was ignored', details: 'colour' }],
  ]);
});
