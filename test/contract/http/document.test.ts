import { describe, expect, test } from 'vitest';
import type { ApiDocument } from '../../../src/http/api-document.ts';
import { describeApi } from '../../../tools/describe-api.ts';
import { openServer, refusalOf } from '../../support/servers/http.ts';

const { server } = await openServer();

describe('/openapi.json', () => {
  // proves: openapi
  test('/openapi.json describes the routes of the host that serves it, and needs no key', async () => {
    const { status, headers, body } = await server.json<ApiDocument>('/openapi.json', { key: null });
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(body).toEqual(JSON.parse(JSON.stringify(await describeApi())));
    expect(body.servers).toEqual([{ url: '/' }]);
  });

  test.each(['/openapi.json', '/docs/json', '/docs/yaml'])(
    'a client that has the current %s is answered 304',
    async (path) => {
      const { status, headers } = await server.fetch(path, { key: null });
      const etag = headers.get('etag') ?? '';
      expect([status, etag]).toEqual([200, expect.stringMatching(/^"[\w-]{20,}"$/)]);
      const again = await server.fetch(path, { key: null, headers: { 'if-none-match': `W/${etag}, "x"` } });
      expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, etag, '']);
    },
  );
});

describe('/docs', () => {
  const open = (path: string) => server.fetch(path, { key: null, headers: { 'x-request-id': 'mine' } });

  test.each(['/docs', '/docs/'])('the page %s loads all of its parts from the service', async (path) => {
    const page = await open(path);
    expect([page.status, page.headers.get('x-request-id')]).toEqual([200, 'mine']);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const html = await page.text();
    const parts = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, part = '']) => part);
    expect(parts.length).toBeGreaterThan(4);
    for (const part of parts) {
      const url = new URL(part, new URL(path, server.address));
      expect(url.origin).toBe(server.address);
      const { status, headers } = await open(url.pathname);
      expect([part, status, headers.get('x-request-id')]).toEqual([part, 200, 'mine']);
    }
  });

  test('the page /docs allows only scripts of the service, has no inline script and does not ask for https', async () => {
    const page = await open('/docs');
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'self'");
    expect(policy).not.toMatch(/script-src|unsafe-eval|upgrade-insecure-requests/);
    for (const [, code] of (await page.text()).matchAll(/<script[^>]*>(.*?)<\/script>/gs)) {
      expect(code?.trim()).toBe('');
    }
  });

  test.each([
    ['GET', '/docs/unknown'],
    ['GET', '/docs/static/..%2f..%2fpackage.json'],
    ['GET', `/docs/static/${'x'.repeat(300)}`],
  ])('%s %s is 404 with the error record', async (method, path) => {
    expect(await refusalOf(server, path, { method, key: null })).toEqual([404, ['route_not_found']]);
  });
});
