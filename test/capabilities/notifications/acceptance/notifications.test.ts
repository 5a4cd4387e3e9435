import { afterEach, beforeEach, expect, test } from 'vitest';
import { databaseUrl, runCli, startService, temporaryFolder } from '../../../acceptance/cli.ts';
import { upload, usersCsv } from '../../../acceptance/service.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts';

let receiver: WebhookReceiver;
beforeEach(async () => {
  receiver = await startWebhookReceiver();
});
afterEach(() => receiver.stop());

test('`sluice notifications` adds, tests, replays and lists a webhook', async () => {
  const dataDir = await temporaryFolder();
  const settings = { NOTIFY_ALLOW_PRIVATE: 'true', DATABASE_URL: await databaseUrl() };
  const env = { ...settings, WORKERS: '1', PUBLIC_URL: 'https://data.example.com' };
  const service = await startService(dataDir, env);
  const notifications = (...args: string[]) =>
    runCli(['notifications', ...args, '--data-dir', dataDir], { env });
  const addition = await notifications('add', '--url', receiver.url, '--on', 'completed', '--type', 'load');
  expect(addition).toMatchObject({ code: 0, stdout: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=\n$/) });
  const [, subscription = ''] = /^Subscription ([0-9a-f-]{36})\./.exec(addition.stderr) ?? [];
  expect(addition.stderr).toContain(`sluice notifications test ${subscription}\n`);

  const { job_id: jobId } = await upload(service.url, service.key, usersCsv(10));
  const hook = await waitFor('the webhook', () => receiver.received[0]);
  expect(JSON.parse(hook.body.toString())).toMatchObject({
    type: 'load.completed',
    data: { job_id: jobId, links: `https://data.example.com/v1/background_jobs/${jobId}` },
  });
  const delivery = await waitFor('the delivery to be noted', async () => {
    const { stdout } = await runCli(['api', 'v1/deliveries', '--data-dir', dataDir], {
      env: { ...settings, PUBLIC_URL: service.url },
    });
    const [newest] = (JSON.parse(stdout) as { data: { delivery_id: string }[] }).data;
    expect(newest).toMatchObject({
      job_id: jobId,
      subscription_id: subscription,
      state: 'delivered',
      last_status: 204,
    });
    return newest?.delivery_id;
  });
  expect(await notifications('replay', delivery)).toMatchObject({ code: 0, stdout: 'Due again: 1.\n' });
  const replay = await waitFor('the replay', () => receiver.received[1]);
  expect(replay.headers['webhook-id']).toBe(hook.headers['webhook-id']);

  receiver.answer((response) => response.writeHead(410).end('gone'));
  expect(await notifications('test', subscription)).toMatchObject({
    code: 1,
    stdout: 'Not delivered: HTTP 410: gone\n',
    stderr: '',
  });
  const { stdout } = await notifications('list');
  expect(stdout).toMatch(
    /^[0-9a-f-]{36} +http:\S+ +standard +completed +load +its receiver answered 410 Gone$/m,
  );
});
