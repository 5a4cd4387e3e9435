import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { changeEnvironment } from '../../../../src/access/environment-store.ts';
import { createApiKey } from '../../../../src/access/key-store.ts';
import { readProfiles } from '../../../support/files/load-file.ts';
import { readEvents } from '../../../support/oracles/events.ts';
import { openServer } from '../../../support/servers/http.ts';
import { waitFor } from '../../../support/wait-for.ts';

/* Runs `@segment/analytics-next` from npm in a page from another origin. */

const { t, server } = await openServer();

const entry = fileURLToPath(new URL('../support/segment-browser.mjs', import.meta.url));
const bundle = await build({ entryPoints: [entry], bundle: true, format: 'esm', write: false });
const script = bundle.outputFiles[0]?.text ?? '';
const pages = createServer((request, response) => {
  const isScript = request.url === '/page.js';
  response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
  response.end(isScript ? script : '<title>…</title><script type="module" src="/page.js"></script>');
});

let browser: Browser;
let site = '';
beforeAll(async () => {
  browser = await chromium.connect(inject('browserUrl'));
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
  const address = pages.address();
  site = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
});
afterAll(async () => {
  await browser.close();
  pages.close();
});

async function visit(strategy: string, isAllowed: boolean) {
  const { environment } = await t.addEnvironment(`${strategy}-${isAllowed}`);
  const { environmentId } = environment;
  if (isAllowed) await changeEnvironment(t.system.db, environment.name, { allowed_origins: [site] });
  const { key } = await createApiKey(t.system.db, environmentId, { label: 'page', scopes: ['browser'] });
  const settings = `/v1/projects/${key}/settings`;
  await waitFor('the origin to be noticed', async () => {
    const { status } = await server.fetch(settings, { key: null, headers: { origin: site } });
    return status === (isAllowed ? 200 : 403);
  });
  const context = await browser.newContext();
  const page = await context.newPage();
  const hosts = new Set<string>();
  page.on('request', (request) => hosts.add(new URL(request.url()).origin));
  await page.goto(`${site}/?to=${server.address}&key=${key}&strategy=${strategy}`);
  return {
    hosts,
    page,
    close: () => context.close(),
    events: () => readEvents(t.system, environmentId),
    profiles: () => readProfiles(t.system, environmentId),
  };
}

// proves: browser-keys
test.each(['standard', 'batching'])(
  'a page sends each of its calls (%s) only to this service',
  async (strategy) => {
    const { hosts, page, close, events, profiles } = await visit(strategy, true);
    await waitFor('the calls of the page', async () => (await page.title()) === 'sent');
    const storedEvents = await waitFor('the events of the page', async () => {
      const arrived = await events();
      return arrived.length === 4 && arrived;
    });
    expect(storedEvents.map(({ type, name }) => [type, name]).sort()).toEqual([
      ['page_view', 'Home'],
      ['page_view', 'Start'],
      ['track', 'Paid'],
      ['track', 'Seen'],
    ]);
    expect(storedEvents.find(({ name }) => name === 'Paid')).toMatchObject({
      user: 'ada',
      company: 'acme',
      metadata: { amount: 49.5 },
    });
    expect(storedEvents.find(({ name }) => name === 'Home')?.metadata).toMatchObject({
      hostname: '127.0.0.1',
    });
    await waitFor('the profiles of the page', async () => 'acme' in (await profiles()).companies);
    expect(await profiles()).toMatchObject({
      users: { ada: { company: 'acme', metadata: { plan: 'pro' } } },
      companies: { acme: { metadata: { size: 120 } } },
    });
    expect([...hosts].sort()).toEqual([site, server.address].sort());
    await close();
  },
);

// proves: browser-keys
test('a page of an origin that is not allowed sends nothing', async () => {
  const { page, close, events, profiles } = await visit('standard', false);
  await waitFor('the refusal', () =>
    page.evaluate(() => performance.getEntriesByType('resource').length > 1),
  );
  expect([await events(), await profiles()]).toEqual([[], { users: {}, companies: {} }]);
  await close();
});
