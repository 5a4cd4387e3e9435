import { describe, expect, test } from 'vitest';
import { readRetryAfter } from '../../../src/base/http-client.ts';
import { pauseAfter, readDeliveryPolicy } from '../../../src/capabilities/notifications/deliver.ts';
import { signWebhook } from '../../../src/capabilities/notifications/send-webhook.ts';
import { checkWebhookUrl } from '../../../src/capabilities/notifications/subscriptions.ts';

test('a signature equals the published example of Standard Webhooks', () => {
  const signed = signWebhook(['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'], {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: 1614265330,
    body: '{"test": 2432232314}',
  });
  expect(signed).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

describe('the pauses between attempts', () => {
  const policy = readDeliveryPolicy({ notifyAllowPrivate: false });
  const pauses = (chance: number) =>
    Array.from({ length: policy.attempts - 1 }, (_, index) => pauseAfter(policy, index + 1, null, chance));

  test('the pauses grow fourfold, to most of a day in total', () => {
    expect(pauses(0.5)).toEqual([15, 60, 240, 960, 3840, 15_360, 61_440].map((seconds) => seconds * 1000));
    expect(pauses(0)[0]).toBe(12_000);
    expect(pauses(1)[0]).toBe(18_000);
  });

  test('a pause is as long as the receiver requests, within bounds', () => {
    expect(pauseAfter(policy, 1, 120_000, 0.5)).toBe(120_000);
    expect(pauseAfter(policy, 1, 1e12, 0.5)).toBe(6 * 3_600_000);
    expect(pauseAfter(policy, 1, 1_000, 0.5)).toBe(15_000);
  });

  test.each([
    ['120', 120_000],
    ['Fri, 20 Nov 2026 12:00:10 GMT', 10_000],
    ['Fri, 20 Nov 2026 11:00:00 GMT', 0],
    ['soon', null],
    ['-5', null],
    [undefined, null],
  ])('the header Retry-After %s means %s ms', (header, ms) => {
    expect(readRetryAfter(header, Date.UTC(2026, 10, 20, 12))).toBe(ms);
  });
});

describe('the address of a webhook', () => {
  const strict = { allowPrivate: false };
  const open = { allowPrivate: true };

  test.each([
    ['ftp://example.com/', strict],
    ['example.com/hooks', strict],
    ['http://example.com/', strict],
    ['https://user:pw@example.com/', open],
    ['https://127.0.0.1/', strict],
    ['https://[::1]/', strict],
    ['https://2130706433/', strict],
    ['http://10.0.0.1/', strict],
    ['http://93.184.215.14/', open],
    ['http://169.254.169.254/', open],
    [`https://example.com/${'a'.repeat(2_000)}`, strict],
  ])('the webhook address number %# is refused', (url, policy) => {
    expect(() => checkWebhookUrl(url, policy)).toThrow(expect.objectContaining({ name: 'InputError' }));
  });
});
