import { Analytics } from '@segment/analytics-node';
import { expect, test } from 'vitest';
import { readEvents } from '../../support/events.ts';
import { openServer } from '../../support/http.ts';
import { readProfiles } from '../../support/load-file.ts';

/* The SDKs of other products as npm has them. They are told the address and a key, and nothing else. */

const { t, server } = await openServer();

async function tenant(name: string) {
  const { key, environment } = await t.addEnvironment(name);
  return {
    key,
    events: () => readEvents(t.system, environment.environmentId),
    profiles: () => readProfiles(t.system, environment.environmentId),
  };
}

const at = new Date('2026-03-04T05:06:07.123Z');

// proves: product-sdks
test('@segment/analytics-node: every call is read back', async () => {
  const { key, events, profiles } = await tenant('segment');
  const analytics = new Analytics({ writeKey: key, host: server.address });
  const errors: unknown[] = [];
  analytics.on('error', (error) => errors.push(error));
  analytics.identify({ userId: 'ada', traits: { plan: 'pro', seats: 7 }, timestamp: at });
  analytics.group({ userId: 'ada', groupId: 'acme', traits: { size: 120 }, timestamp: at });
  analytics.track({
    userId: 'ada',
    event: 'Paid',
    properties: { amount: 49.5 },
    messageId: 'm1',
    timestamp: at,
  });
  analytics.page({ anonymousId: 'anon', name: 'Home', properties: { url: 'https://example.com/a' } });
  analytics.screen({ userId: 'ada', name: 'Start' });
  await analytics.closeAndFlush();
  expect(errors).toEqual([]);
  expect(await profiles()).toEqual({
    users: { ada: { company: 'acme', metadata: { plan: 'pro', seats: 7 } } },
    companies: { acme: { metadata: { size: 120 } } },
  });
  const stored = (await events()).sort((a, b) => a.name.localeCompare(b.name));
  expect(stored).toMatchObject([
    { type: 'page_view', name: 'Home', user: 'anon', metadata: { hostname: 'example.com', pathname: '/a' } },
    {
      id: 'm1',
      name: 'Paid',
      user: 'ada',
      company: 'acme',
      at: at.toISOString(),
      metadata: { amount: 49.5 },
    },
    { type: 'page_view', name: 'Start', user: 'ada' },
  ]);
  expect(JSON.stringify(stored)).not.toContain(key);
});
