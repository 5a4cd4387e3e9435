import { describe, expect, test } from 'vitest';
import { createApiKey } from '../../../src/access/key-store.ts';
import { type Scope, scopes } from '../../../src/domain/caller.ts';
import { describedApi } from '../../support/oracles/api-document.ts';
import { type ErrorBody, openServer } from '../../support/servers/http.ts';

const { t, server } = await openServer();

const job = '/v1/background_jobs/01a1f879-8845-7223-9ca4-ceafb3823817';
const lookups = '/api/v1/analytics/exports/lookups';
/** Every route that requires a key, grouped by the required scope. */
const access: Readonly<Record<(typeof scopes)[number], readonly string[]>> = {
  ingest: [
    ...['POST /v1/identify', 'POST /v1/track', 'POST /v1/companies/identify', 'POST /v1/batch'],
    'POST /v1/{call}',
    ...['/capture', '/e', '/i/v0/e', '/batch', '/2/httpapi', '/identify', '/groupidentify'].map(
      (path) => `POST ${path}`,
    ),
    'GET /v1/projects/{write_key}/settings',
    ...['/track', '/engage', '/groups', '/import'].flatMap((path) => [`POST ${path}`, `GET ${path}`]),
  ],
  import: [
    'POST /v1/imports',
    'POST /v1/imports/inspect',
    'GET /v1/rules',
    'PUT /v1/rules',
    'POST /v1/segments',
    'PUT /v1/segments/{segment_id}',
    'DELETE /v1/segments/{segment_id}',
    'POST /v1/users/bulk_identify',
    'POST /v1/companies/bulk_identify',
    'POST /v1/background_jobs/{job_id}/cancel',
    'POST /v1/background_jobs/{job_id}/retry',
    'POST /v1/background_jobs/{job_id}/apply',
    'POST /v1/background_jobs/{job_id}/undo',
    'POST /v1/background_jobs/{job_id}/upload',
    'PUT /v1/schedules/{schedule}',
    'PATCH /v1/schedules/{schedule}',
    'DELETE /v1/schedules/{schedule}',
    'POST /v1/schedules/{schedule}/runs',
    'POST /v1/inbox/{file_id}/take_again',
    'POST /v1/deliveries/{delivery_id}/replay',
    'POST /v1/subscriptions/{subscription_id}/test',
  ],
  export: [
    'POST /api/v1/analytics/exports',
    'POST /api/v1/analytics/exports/preview',
    'GET /api/v1/analytics/exports/jobs',
    'GET /api/v1/analytics/exports/jobs/{job_id}',
  ],
  read: [
    'GET /v1/overview',
    'GET /v1/background_jobs',
    'GET /v1/background_jobs/{job_id}',
    'GET /v1/background_jobs/{job_id}/rejects',
    'GET /v1/background_jobs/{job_id}/outcomes',
    'GET /v1/background_jobs/{job_id}/plan',
    'GET /v1/suppressions',
    'GET /v1/users',
    'GET /v1/users/{user_id}',
    'GET /v1/users/{user_id}/events',
    'GET /v1/users/{user_id}/history',
    'GET /v1/companies',
    'GET /v1/companies/{company_id}',
    'GET /v1/companies/{company_id}/history',
    'GET /v1/segments/{segment_id}',
    'POST /v1/segments/preview',
    'GET /v1/schedules',
    'GET /v1/schedules/{schedule}',
    'GET /v1/inbox',
    'GET /v1/deliveries',
    'GET /v1/deliveries/{delivery_id}',
    'GET /v1/subscriptions',
    'GET /v1/schedules/{schedule}/runs',
    ...[
      'banners',
      'checklists',
      'company_properties',
      'embeds',
      'events_properties',
      'features_events',
      'flows',
      'resource_center_modules',
      'segments',
      'spotlights',
      'surveys',
      'user_properties',
    ].map((name) => `GET ${lookups}/${name}`),
  ],
  delete: ['DELETE /v1/users', 'DELETE /v1/companies', 'DELETE /v1/suppressions'],
};
const withoutScope = [
  'GET /v1/validate',
  'GET /v1/console/session',
  'PUT /v1/console/session',
  'DELETE /v1/console/session',
  'POST /v1/console/oidc/sign_out',
  ...['GET /v1/keys', 'POST /v1/keys', 'POST /v1/keys/{key_id}/revoke'],
  ...['GET /v1/environments', 'POST /v1/environments'],
  'PATCH /v1/environments/{name}',
  'POST /v1/subscriptions',
  'DELETE /v1/subscriptions/{subscription_id}',
  'GET /v1/audit',
];

const routes = scopes.flatMap((scope) =>
  access[scope].map((route): readonly [method: string, path: string, scope: Scope] => {
    const [method = '', template = ''] = route.split(' ');
    const path = template.replace('{call}', 'page').replace(/\{\w+\}/, job.split('/').at(-1) ?? '');
    return [method, path, scope];
  }),
);

test('the table of scopes has every route of the API document that takes a key', async () => {
  const { document } = await describedApi();
  const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, { security }]) => security?.some((scheme) => 'apiKey' in scheme))
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  );
  expect([...Object.values(access).flat(), ...withoutScope].sort()).toEqual(documented.sort());
});

const unauthorized = {
  errors: [
    {
      error: 'Unauthorized',
      error_code: 'invalid_api_key',
      message: 'Unauthorized - Invalid API key',
      details: expect.any(String),
    },
  ],
};

describe.each(routes)('%s %s', (method, path, scope) => {
  const key = async (keyScopes: readonly Scope[]) =>
    (await createApiKey(t.system.db, t.environment.environmentId, { label: 'x', scopes: keyScopes })).key;

  test('a route answers 401 without a valid key', async () => {
    const headers = [{}, { authorization: 'Bearer nonsense' }, { authorization: `Digest ${t.key}` }];
    for (const requestHeaders of headers) {
      const {
        status,
        body,
        headers: answerHeaders,
      } = await server.json<ErrorBody>(path, {
        method,
        key: null,
        headers: requestHeaders as Record<string, string>,
      });
      expect(status).toBe(401);
      expect(body).toEqual(unauthorized);
      expect(answerHeaders.get('content-type')).toBe('application/json; charset=utf-8');
    }
  });

  test(`a route needs the scope ${scope}, and no other`, async () => {
    const refusal = await server.json<ErrorBody>(path, {
      method,
      key: await key(scopes.filter((other) => other !== scope)),
    });
    expect([refusal.status, refusal.body.errors[0]?.error_code]).toEqual([403, 'insufficient_scope']);
    expect(refusal.body.errors[0]?.details).toContain(scope);
    const withScope = await server.fetch(path, { method, key: await key([scope]) });
    expect([401, 403]).not.toContain(withScope.status);
  });
});
