import { AnalyticsBrowser } from '@segment/analytics-next';

const { searchParams } = new URL(location.href);
const cdnURL = searchParams.get('to');
const writeKey = searchParams.get('key');
const deliveryStrategy =
  searchParams.get('strategy') === 'batching'
    ? { strategy: 'batching', config: { size: 10, timeout: 100 } }
    : { strategy: 'standard' };

const analytics = AnalyticsBrowser.load(
  { writeKey, cdnURL },
  { integrations: { 'Segment.io': { deliveryStrategy } } },
);
await analytics.page('Home');
await analytics.track('Seen', { before: 'identify' });
await analytics.identify('ada', { plan: 'pro' });
await analytics.group('acme', { size: 120 });
await analytics.track('Paid', { amount: 49.5 });
await analytics.screen('Start');
document.title = 'sent';
