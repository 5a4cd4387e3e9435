import { expect, test } from 'vitest';
import { describedApi } from '../../support/oracles/api-document.ts';
import { type ErrorBody, openServer, refusalOf } from '../../support/servers/http.ts';

const { t, server } = await openServer();
const { document } = await describedApi();

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const operations = Object.entries(document.paths).flatMap(([path, handlers]) => {
  const usedMethods = Object.keys(handlers).map((name) => name.toUpperCase());
  const allow = [...usedMethods, ...(usedMethods.includes('GET') ? ['HEAD'] : [])].sort().join(', ');
  return methods
    .filter((method) => !usedMethods.includes(method) && !isOfAnother(method, path))
    .map((method) => [method, path, allow] as const);
});

/**
 * Returns whether another documented route serves the request. For example, `DELETE
 * /v1/users/{user_id}` serves `DELETE /v1/users/bulk_identify`, and deletes the user with the id
 * `bulk_identify`.
 */
function isOfAnother(method: string, path: string): boolean {
  const matching = Object.keys(document.paths).filter((other) => matches(other, path));
  return (
    method !== 'GET' && matching.some((other) => document.paths[other]?.[method.toLowerCase()] !== undefined)
  );
}

function matches(template: string, path: string): boolean {
  const parts = path.split('/');
  const templateParts = template.split('/');
  return (
    template !== path &&
    templateParts.length === parts.length &&
    templateParts.every(
      (part, at) => part === parts[at] || (part.startsWith('{') && !parts[at]?.startsWith('{')),
    )
  );
}

// proves: openapi
test.each(operations)('the answer to %s %s is 405 with methods', async (method, path, allow) => {
  const { status, headers, body } = await server.json<ErrorBody>(
    path.replace('{call}', 'page').replace(/\{\w+\}/g, 'x'),
    { method },
  );
  expect([status, headers.get('allow')]).toEqual([405, allow]);
  expect(body.errors[0]?.error_code).toBe('method_not_allowed');
});

const gets = Object.entries(document.paths)
  .filter(([path, { get }]) => get !== undefined && !/live|files/.test(path))
  .map(([path]) =>
    path.replace('{call}', 'page').replace(/\{\w+\}/g, '01a1f879-8845-7223-9ca4-ceafb3823817'),
  );

// proves: openapi
test.each(gets)('GET %s ignores unknown parameters', async (path) => {
  const withoutParameters = await server.fetch(path);
  const withUnknown = await server.fetch(`${path}?colour=red&_=1&api_version=2`);
  expect(withUnknown.status).toBe(withoutParameters.status);
});

// proves: environments-apart
test('every route of jobs answers 404 for a job of another environment', async () => {
  const stranger = await t.addEnvironment('stranger');
  const path = '/v1/background_jobs';
  const { body: job } = await server.json<{ job_id: string }>('/v1/imports', {
    method: 'POST',
    body: 'user_id\nu1\n',
    headers: { 'content-type': 'text/csv' },
  });
  const jobRoutes = Object.entries(document.paths).flatMap(([route, handlers]) => {
    const [, suffix] = /^\/v1\/background_jobs\/\{job_id\}\/?(.*)$/.exec(route) ?? [];
    return suffix === undefined ? [] : Object.keys(handlers).map((method) => [method, suffix] as const);
  });
  expect(jobRoutes.length).toBeGreaterThan(8);
  for (const [method, suffix] of jobRoutes) {
    const refusal = await refusalOf(server, `${path}/${job.job_id}/${suffix}`, {
      method: method.toUpperCase(),
      key: stranger.key,
      ...(suffix === 'apply' && { json: {} }),
    });
    expect([method, suffix, ...refusal]).toEqual([method, suffix, 404, ['not_found']]);
  }
  expect((await server.json(`${path}/${job.job_id}`)).body).toMatchObject({
    status: expect.stringMatching(/queued|processing/),
    // The members of capabilities that the load does not use are empty or null.
    undoes: [],
    undone_by: null,
    undo: null,
    mirror: null,
    on_failure: null,
    rules_version: null,
    findings: [],
  });
});
