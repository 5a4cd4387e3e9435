import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readProfiles } from '../../support/files/load-file.ts';
import { readEvents } from '../../support/oracles/events.ts';
import { openServer } from '../../support/servers/http.ts';

/*
 * Runs SDKs of other products from npm in separate processes, each with only an address and a key.
 */

const { t, server } = await openServer();

async function run(program: string) {
  const { key, environment } = await t.addEnvironment(program);
  const path = fileURLToPath(new URL(`./support/${program}.mjs`, import.meta.url));
  const { stderr } = await promisify(execFile)(process.execPath, [path, server.address, key]);
  expect(stderr).toBe('');
  const events = await readEvents(t.system, environment.environmentId);
  expect(JSON.stringify(events)).not.toContain(key);
  return {
    events: events.sort((a, b) => a.name.localeCompare(b.name)),
    profiles: await readProfiles(t.system, environment.environmentId),
  };
}

const at = '2026-03-04T05:06:07.123Z';

// proves: product-sdks
test('every call of @segment/analytics-node is stored', async () => {
  const { events, profiles } = await run('segment-node');
  expect(profiles).toEqual({
    users: {
      ada: { company: 'acme', metadata: { plan: 'pro', seats: 7 } },
      anon: { company: null, metadata: {} },
    },
    companies: { acme: { metadata: { size: 120 } } },
  });
  expect(events).toMatchObject([
    { type: 'page_view', name: 'Home', user: 'anon', metadata: { hostname: 'example.com', pathname: '/a' } },
    { id: 'm1', name: 'Paid', user: 'ada', company: 'acme', at, metadata: { amount: 49.5 } },
    { type: 'page_view', name: 'Start', user: 'ada' },
  ]);
});

// proves: product-sdks
test('every call of posthog-node is stored', async () => {
  const { events, profiles } = await run('posthog-node');
  expect(profiles).toMatchObject({
    users: {
      ada: { metadata: { plan: 'pro', source: 'ads' } },
      grace: { metadata: { plan: 'free' } },
    },
    companies: { acme: { metadata: { size: 120 } } },
  });
  expect(events).toMatchObject([
    { name: 'Left', user: 'grace' },
    { type: 'page_view', user: 'grace', metadata: { hostname: 'example.com' } },
    {
      id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
      name: 'Paid',
      user: 'ada',
      company: 'acme',
      at,
      metadata: { amount: 49.5 },
    },
  ]);
});

// proves: product-sdks
test('every call of mixpanel is stored, and an unsupported one is refused', async () => {
  const { events, profiles } = await run('mixpanel');
  expect(profiles).toEqual({
    users: {
      ada: { company: 'acme', metadata: { email: 'ada@example.com', plan: 'free', source: 'ads' } },
      grace: { company: null, metadata: {} },
    },
    companies: { acme: { metadata: { size: 120 } } },
  });
  expect(events).toMatchObject([
    { id: 'Left', name: 'Left', user: 'ada', at: '2026-03-04T05:06:07.000Z' },
    { name: 'Now', user: 'ada', company: 'acme' },
    { name: 'Old', user: 'grace', at: '2025-03-04T05:06:07.000Z' },
    { id: 'Older', name: 'Older', user: 'grace' },
    { id: 'Paid', name: 'Paid', metadata: { amount: 49.5 } },
  ]);
});

// proves: product-sdks
test('every call of @amplitude/analytics-node is stored, on both of its paths', async () => {
  const { events, profiles } = await run('amplitude-node');
  expect(profiles).toMatchObject({
    users: { ada: { metadata: { plan: 'pro', source: 'ads' } } },
    companies: { acme: { metadata: { size: 120 } } },
  });
  expect(events).toMatchObject([
    { id: '2/httpapi', name: '2/httpapi', user: 'd1' },
    { id: 'batch', name: 'batch', user: 'd1' },
    { id: 'i1', name: 'Paid', user: 'ada', company: 'acme', at, metadata: { amount: 49.5 } },
  ]);
});
