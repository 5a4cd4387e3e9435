import { formatCount } from '../../base/wording.ts';
import {
  choice,
  defineCommand,
  flag,
  optional,
  parsed,
  parseIdOf,
  parseListOf,
  parseSince,
  parseUpTo,
  required,
  text,
} from '../../cli/define-command.ts';
import { exitCodes, UsageError } from '../../cli/errors.ts';
import { withEnvironment } from '../../cli/session.ts';
import { printDone, printList } from '../../cli/terminal.ts';
import { type Outcome, outcomes } from '../../domain/job.ts';
import { defaultJobKinds, defaultOutcomes, formatNames, type JobKind, jobKinds } from './api.ts';
import { openSendContext, readDeliveryPolicy } from './deliver.ts';
import { renderSubscription, replayDeliveries, sendTest } from './deliveries.ts';
import type { Replay } from './delivery-store.ts';
import { listSubscriptions } from './subscription-store.ts';
import { addSubscription, removeSubscription, rotateSecret, usualOverlapHours } from './subscriptions.ts';

const subscription = required(
  '<id>',
  'as `sluice notifications list` shows it',
  parseIdOf('subscription', 'notifications list'),
);

const add = defineCommand({
  name: 'add',
  summary: 'notify a webhook or an address',
  description:
    'Subscribes a webhook or an e-mail address to the ends of jobs. Prints the secret that signs a webhook once, as the only\n' +
    'text on standard output.',
  options: {
    url: text('--url <url>', 'a webhook, https://…'),
    email: text('--email <address>', 'an e-mail address'),
    name: text('--name <name>', 'a name for lists, such as ops'),
    format: choice('--format <format>', 'what the webhook gets', formatNames, 'standard'),
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
    'sluice notifications add --url https://hooks.slack.com/… --format slack',
  ],
  run: async (invocation) => {
    const { flags, terminal, json } = invocation;
    const wish = {
      ...readTarget(flags.url, flags.email),
      name: flags.name ?? null,
      format: flags.format,
      outcomes: flags.on,
      kinds: flags.type,
    };
    await withEnvironment(invocation, async ({ system, environmentId }) => {
      const policy = readDeliveryPolicy(system.config);
      const { subscription, secret } = await addSubscription(system, environmentId, wish, policy);
      if (json)
        return terminal.json({ ...renderSubscription(subscription), ...(secret === null ? {} : { secret }) });
      const id = subscription.subscriptionId;
      if (secret === null)
        return terminal.print(`Subscription ${id}: ${renderSubscription(subscription).target} is notified.`);
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
  description: 'Lists the subscriptions of an environment, also disabled ones, without their secrets.',
  json: true,
  examples: ['sluice notifications list --env staging'],
  inEnvironment: async (call) => {
    const subscriptions = await listSubscriptions(call.system.db, call.environmentId);
    const hasNames = subscriptions.some(({ name }) => name !== null);
    printList(call, subscriptions.map(renderSubscription), {
      columns: ['id', ...(hasNames ? ['name'] : []), 'target', 'format', 'on', 'types', 'disabled_reason'],
      none: `Nobody is notified of the jobs of ${call.env}.`,
    });
  },
});

const test = defineCommand({
  name: 'test',
  summary: 'send a ping now',
  description: 'Sends an event of type `ping` from this process, once, and prints the outcome.',
  argument: subscription,
  json: true,
  examples: ['sluice notifications test 019f3c7a-51b0-7e64-b2d8-4c9a7f1e6b03'],
  inEnvironment: async ({ system, environmentId, argument: id, terminal, json }) => {
    const sender = openSendContext(system);
    const result = await sendTest(sender, environmentId, id).finally(() => sender.mail.close());
    const { delivered, status, error, took_ms } = result;
    if (!delivered) process.exitCode = exitCodes.failed;
    const answer = status === null ? '' : `, HTTP ${status}`;
    const sentence = delivered ? `Delivered${answer}, in ${took_ms} ms.` : `Not delivered: ${error}`;
    printDone({ terminal, json }, result, sentence);
  },
});

const mostOverlapHours = 30 * 24;

const rotate = defineCommand({
  name: 'rotate-secret',
  summary: 'a new secret for a webhook',
  description:
    'Creates a new secret and prints it once. Until the overlap ends webhooks have two signatures, one by each secret, so\n' +
    'that the receiver can change over.',
  argument: subscription,
  options: {
    overlap: parsed(
      '--overlap <hours>',
      'hours that the old secret stays valid',
      parseUpTo(mostOverlapHours),
      usualOverlapHours,
    ),
  },
  json: true,
  examples: ['sluice notifications rotate-secret 019f3c7a-51b0-7e64-b2d8-4c9a7f1e6b03'],
  inEnvironment: async ({ system, environmentId, argument: id, flags, terminal, json }) => {
    const { secret, previousUntil } = await rotateSecret(system, environmentId, id, flags.overlap);
    const until = previousUntil.toISOString();
    if (!json) terminal.inform(`The new secret of subscription ${id}, shown only this once:`);
    printDone({ terminal, json }, { id, secret, previous_secret_until: until }, secret);
    if (!json) terminal.inform(`The old one is valid until ${until}.`);
  },
});

const remove = defineCommand({
  name: 'remove',
  summary: 'stop notifying somebody',
  description: 'Ends a subscription. Gives up what waits for it; its deliveries stay listed for a while.',
  argument: subscription,
  json: true,
  examples: ['sluice notifications remove 019f3c7a-51b0-7e64-b2d8-4c9a7f1e6b03'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument: id } = call;
    await removeSubscription(system, environmentId, id);
    printDone(call, { id, removed: true }, `Subscription ${id} is removed.`);
  },
});

const replay = defineCommand({
  name: 'replay',
  summary: 'send deliveries again',
  description:
    'Makes one delivery due again, or all since a time that were given up, under the same id and with as many tries as a\n' +
    'new one. Workers send it.',
  argument: optional('[delivery]', 'as `sluice api v1/deliveries` shows it'),
  options: {
    failed: flag('--failed', 'all that were given up'),
    since: parsed('--since <when>', 'with --failed: how long ago, such as 24h, or a date', parseSince),
  },
  environment: true,
  json: true,
  examples: [
    'sluice notifications replay 01a1f8d2-fdeb-7b52-9c1e-8a6f0d3c2e42',
    'sluice notifications replay --failed --since 24h',
  ],
  run: async (invocation) => {
    const { argument, flags } = invocation;
    const replay = readWanted(argument, flags.failed, flags.since);
    await withEnvironment(invocation, async ({ system, environmentId }) => {
      const publicIds = await replayDeliveries(system, environmentId, replay);
      const ids = publicIds.map((publicId) => ({ delivery_id: publicId }));
      printDone(invocation, ids, `Due again: ${formatCount(ids.length)}.`);
    });
  },
});

const parseDelivery = parseIdOf('delivery', 'api v1/deliveries');

function readWanted(delivery: string | undefined, failed: boolean, since: Date | undefined): Replay {
  if (delivery !== undefined && !failed && since === undefined) return { publicId: parseDelivery(delivery) };
  if (delivery === undefined && failed && since !== undefined) return { failedSince: since };
  throw new UsageError('Name what to send again: the id of a delivery, or --failed --since 24h.');
}

export const notifications = defineCommand({
  name: 'notifications',
  summary: 'webhooks and e-mail when jobs end: add, list, test, replay …',
  description:
    'Notifies webhooks and addresses when a load, an export or a run of a schedule ends. A server need not run.',
  examples: [
    'sluice notifications add --url https://example.com/hooks',
    'sluice notifications replay --failed --since 24h',
  ],
  commands: [add, list, test, rotate, remove, replay],
});
