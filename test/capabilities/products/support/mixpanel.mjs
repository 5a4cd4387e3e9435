import { promisify } from 'node:util';
import Mixpanel from 'mixpanel';

const [url, key] = process.argv.slice(2);
const { hostname, port } = new URL(url);
// Drops the warning that `key` is deprecated. The SDK accepts other credentials only over https.
const logger = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };
const mixpanel = Mixpanel.init(key, { host: hostname, port, protocol: 'http', key, logger });
const time = Date.parse('2026-03-04T05:06:07.000Z') / 1_000;
const event = (name, properties) => ({
  event: name,
  properties: { distinct_id: 'ada', time, $insert_id: name, ...properties },
});
const { people, groups } = mixpanel;
await promisify(people.set.bind(people))('ada', { $email: 'ada@example.com', plan: 'pro', old: 1 });
await promisify(people.set_once.bind(people))('ada', { plan: 'free', source: 'ads' });
await promisify(people.unset.bind(people))('ada', 'old');
await promisify(groups.set.bind(groups))('company', 'acme', { size: 120 });
await promisify(mixpanel.track)('Now', { distinct_id: 'ada', company_id: 'acme' });
await promisify(mixpanel.track_batch)([event('Paid', { amount: 49.5 }), event('Left')]);
await promisify(mixpanel.import)('Old', new Date('2025-03-04T05:06:07Z'), { distinct_id: 'grace' });
await promisify(mixpanel.import_batch)([event('Older', { distinct_id: 'grace' })]);
const refusal = await promisify(people.increment.bind(people))('ada', 'logins').catch(
  ({ message }) => message,
);
if (!/increments/.test(refusal)) process.stderr.write(`not refused: ${refusal}`);
