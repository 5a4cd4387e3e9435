import { InvalidArgumentError } from 'commander';
import {
  defaultJobKinds,
  defaultOutcomes,
  type JobKind,
  jobKinds,
  type Outcome,
  outcomes,
} from '../domain/notification.ts';
import { readDeliveryPolicy } from '../notifications/deliver-notification.ts';
import { sendTest } from '../notifications/deliveries.ts';
import { renderSubscription } from '../notifications/render-delivery.ts';
import { addSubscription, removeSubscription, rotateSecret } from '../notifications/subscriptions.ts';
import { openSendContext } from '../open-send-context.ts';
import { listSubscriptions } from '../postgres/stores/notifications.ts';
import { defineCommand } from './define-command.ts';
import { deliveries, replay } from './deliveries.ts';
import { exitCodes, UsageError } from './errors.ts';
import { columnsOf, printable, printList } from './format.ts';
import { parsed, parseIdOf, parseListOf, required, text } from './options.ts';
import { withEnvironment } from './session.ts';

const subscription = required(
  '<id>',
  'as `sluice notifications list` shows it',
  parseIdOf('subscription', 'notifications list'),
);

const add = defineCommand({
  name: 'add',
  summary: 'notify a webhook or an address',
  description:
    'Subscribes a webhook or an e-mail address to the ends of jobs. The secret that signs a webhook is shown this once, as\n' +
    'the only text on standard output.',
  options: {
    url: text('--url <url>', 'a webhook, https://…'),
    email: text('--email <address>', 'an e-mail address'),
    on: parsed<Outcome[]>('--on <list>', `of ${outcomes.join(', ')}`, parseListOf(outcomes), [
      ...defaultOutcomes,
    ]),
    type: parsed<JobKind[]>('--type <list>', `of ${jobKinds.join(', ')}`, parseListOf(jobKinds), [
      ...defaultJobKinds,
    ]),
  },
  environment: true,
  json: true,
  examples: [
    'SECRET=$(sluice notifications add --url https://example.com/hooks)',
    'sluice notifications add --email ops@example.com --on failed --type load',
  ],
  run: async (invocation) => {
    const { flags, terminal, json } = invocation;
    const wish = { ...readTarget(flags.url, flags.email), outcomes: flags.on, kinds: flags.type };
    await withEnvironment(invocation, async ({ system, environmentId }) => {
      const policy = readDeliveryPolicy(system.config);
      const { subscription, secret } = await addSubscription(system.db, environmentId, wish, policy);
      if (json)
        return terminal.json({ ...renderSubscription(subscription), ...(secret === null ? {} : { secret }) });
      const id = subscription.subscriptionId;
      if (secret === null) return terminal.print(`Subscription ${id}: ${subscription.target} is notified.`);
      terminal.inform(`Subscription ${id}. Its secret, shown only this once:`);
      terminal.print(secret);
      terminal.inform(`To try it: sluice notifications test ${id}`);
    });
  },
});

function readTarget(url: string | undefined, email: string | undefined) {
  if (url !== undefined && email === undefined) return { channel: 'webhook', target: url } as const;
  if (email !== undefined && url === undefined) return { channel: 'email', target: email } as const;
  throw new UsageError('Name the recipient: either --url or --email.');
}

const list = defineCommand({
  name: 'list',
  summary: 'who is notified',
  description: 'Lists the subscriptions of an environment, the disabled ones too; never their secrets.',
  environment: true,
  json: true,
  examples: ['sluice notifications list --env staging'],
  inEnvironment: async (call) => {
    const { system, environmentId, env } = call;
    printList(call, {
      items: await listSubscriptions(system.db, environmentId),
      render: renderSubscription,
      columns: columnsOf('id', 'who', 'on', 'types', 'status'),
      cells: ({ subscriptionId, target, outcomes, kinds, disabled }) => [
        subscriptionId,
        printable(target, 60),
        outcomes.join(','),
        kinds.join(','),
        printable(disabled === null ? 'live' : `disabled: ${disabled.reason}`, 60),
      ],
      none: `Nobody is notified of the jobs of ${env}.`,
    });
  },
});

const test = defineCommand({
  name: 'test',
  summary: 'send a ping now',
  description: 'Sends an event of type `ping` from this process, once, and says how that went.',
  argument: subscription,
  environment: true,
  json: true,
  examples: ['sluice notifications test 019f3c7a-51b0-7e64-b2d8-4c9a7f1e6b03'],
  inEnvironment: async ({ system, environmentId, argument: id, terminal, json }) => {
    const sender = openSendContext(system);
    const sent = await sendTest(sender, environmentId, id).finally(() => sender.mail.close());
    const { publicId, outcome, status, error, tookMs } = sent;
    const delivered = outcome === 'delivered';
    if (!delivered) process.exitCode = exitCodes.failed;
    if (json) return terminal.json({ delivery_id: publicId, delivered, status, error, took_ms: tookMs });
    const answer = status === null ? '' : `, HTTP ${status}`;
    terminal.print(delivered ? `Delivered${answer}, in ${tookMs} ms.` : `Not delivered: ${error}`);
  },
});

const rotate = defineCommand({
  name: 'rotate-secret',
  summary: 'a new secret for a webhook',
  description:
    'Makes a new secret and shows it, this once. Until the overlap ends webhooks have two signatures, one by each\n' +
    'secret, so that the receiver can change over.',
  argument: subscription,
  options: {
    overlap: parsed('--overlap <hours>', 'hours that the old secret stays valid', parseHours, 24),
  },
  environment: true,
  json: true,
  examples: ['sluice notifications rotate-secret 019f3c7a-51b0-7e64-b2d8-4c9a7f1e6b03'],
  inEnvironment: async ({ system, environmentId, argument: id, flags, terminal, json }) => {
    const { secret, previousUntil } = await rotateSecret(system.db, environmentId, id, flags.overlap);
    const until = previousUntil.toISOString();
    if (json) return terminal.json({ id, secret, previous_secret_until: until });
    terminal.inform(`The new secret of subscription ${id}, shown only this once:`);
    terminal.print(secret);
    terminal.inform(`The old one is valid until ${until}.`);
  },
});

/** Hours from 0 to 30 days. */
function parseHours(text: string): number {
  const hours = Number(text);
  if (/^\d{1,3}$/.test(text) && hours <= 720) return hours;
  throw new InvalidArgumentError('a whole number of hours from 0 to 720.');
}

const remove = defineCommand({
  name: 'remove',
  summary: 'stop notifying somebody',
  description: 'Ends a subscription. What waits for it is given up; its deliveries stay listed for a while.',
  argument: subscription,
  environment: true,
  json: true,
  examples: ['sluice notifications remove 019f3c7a-51b0-7e64-b2d8-4c9a7f1e6b03'],
  inEnvironment: async ({ system, environmentId, argument: id, terminal, json }) => {
    await removeSubscription(system.db, environmentId, id);
    if (json) terminal.json({ id, removed: true });
    else terminal.print(`Subscription ${id} is removed.`);
  },
});

export const notifications = defineCommand({
  name: 'notifications',
  summary: 'webhooks and e-mail when jobs end: add, list, test, replay …',
  description: 'Who is notified when a load, an export or a run of a schedule ends. A server need not run.',
  examples: [
    'sluice notifications add --url https://example.com/hooks',
    'sluice notifications deliveries --failed',
  ],
  commands: [add, list, test, rotate, remove, deliveries, replay],
});
