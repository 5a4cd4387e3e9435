import { Analytics } from '@segment/analytics-node';

const [host, writeKey] = process.argv.slice(2);
const timestamp = new Date('2026-03-04T05:06:07.123Z');
const analytics = new Analytics({ writeKey, host });
analytics.on('error', (error) => process.stderr.write(String(error.reason ?? error)));
analytics.identify({ userId: 'ada', traits: { plan: 'pro', seats: 7 }, timestamp });
analytics.group({ userId: 'ada', groupId: 'acme', traits: { size: 120 }, timestamp });
analytics.track({ userId: 'ada', event: 'Paid', properties: { amount: 49.5 }, messageId: 'm1', timestamp });
analytics.page({ anonymousId: 'anon', name: 'Home', properties: { url: 'https://example.com/a' } });
analytics.screen({ userId: 'ada', name: 'Start' });
await analytics.closeAndFlush();
