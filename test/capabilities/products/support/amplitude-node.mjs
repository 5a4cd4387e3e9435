import * as amplitude from '@amplitude/analytics-node';

const [url, key] = process.argv.slice(2);
const time = Date.parse('2026-03-04T05:06:07.123Z');
const failures = [];
const check = async ({ promise }) => {
  const { code, message, event } = await promise;
  if (code !== 200) failures.push(`${event.event_type}: ${message}`);
};
const calls = [];
for (const [path, useBatch] of [
  ['2/httpapi', false],
  ['batch', true],
]) {
  const client = amplitude.createInstance();
  await client.init(key, { serverUrl: `${url}/${path}`, useBatch, logLevel: 0, flushIntervalMillis: 10 })
    .promise;
  const user = { user_id: 'ada', time };
  calls.push(
    check(client.track('Paid', { amount: 49.5 }, { ...user, insert_id: 'i1', groups: { company: 'acme' } })),
  );
  calls.push(check(client.track(path, undefined, { device_id: 'd1', insert_id: path })));
  const identify = new amplitude.Identify().set('plan', 'pro').setOnce('source', 'ads');
  calls.push(check(client.identify(identify, user)));
  calls.push(check(client.groupIdentify('company', 'acme', new amplitude.Identify().set('size', 120), user)));
}
await Promise.all(calls);
process.stderr.write(failures.join('\n'));
