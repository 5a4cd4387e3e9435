import { PostHog } from 'posthog-node';

const [host, key] = process.argv.slice(2);
const timestamp = new Date('2026-03-04T05:06:07.123Z');
const posthog = new PostHog(key, { host, flushAt: 3 });
posthog.on('error', (error) => process.stderr.write(String(error)));
posthog.identify({ distinctId: 'ada', properties: { plan: 'pro', $set_once: { source: 'ads' } } });
posthog.groupIdentify({ groupType: 'company', groupKey: 'acme', properties: { size: 120 } });
const paid = { event: 'Paid', properties: { amount: 49.5 }, groups: { company: 'acme' }, timestamp };
posthog.capture({ distinctId: 'ada', ...paid, uuid: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01' });
posthog.capture({
  distinctId: 'grace',
  event: '$pageview',
  properties: { $current_url: 'https://example.com/a' },
});
await posthog.captureImmediate({
  distinctId: 'grace',
  event: 'Left',
  properties: { $set: { plan: 'free' } },
});
await posthog.shutdown();
