import type { Command } from 'commander';
import {
  defaultJobKinds,
  defaultOutcomes,
  type JobKind,
  jobKinds,
  type Outcome,
  outcomes,
} from '../../domain/notification.ts';
import { readDeliveryPolicy } from '../../notifications/delivery-policy.ts';
import { addSubscription } from '../../notifications/subscriptions.ts';
import type { Cli } from '../cli.ts';
import { UsageError } from '../exit-codes.ts';
import { parseListOf } from '../notifications/parse-flags.ts';
import { renderSubscription } from '../notifications/render-subscription.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly url?: string;
  readonly email?: string;
  readonly on: Outcome[];
  readonly type: JobKind[];
  readonly json: boolean;
}

export function addNotificationsAddCommand(notifications: Command, cli: Cli): void {
  notifications
    .command('add')
    .summary('tell a webhook or an address')
    .description(
      'Subscribes a webhook or an e-mail address to the ends of jobs. The secret of a webhook, by which it is signed, is\n' +
        'shown this once, and is the only thing on standard output.',
    )
    .option('--url <url>', 'a webhook, https://…')
    .option('--email <address>', 'an e-mail address')
    .option('--on <list>', `of ${outcomes.join(', ')}`, parseListOf(outcomes), [...defaultOutcomes])
    .option('--type <list>', `of ${jobKinds.join(', ')}`, parseListOf(jobKinds), [...defaultJobKinds])
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      '\nExamples:\n  $ SECRET=$(sluice notifications add --url https://example.com/hooks)\n  $ sluice notifications add --email ops@example.com --on failed --type load',
    )
    .action((flags: Flags, command: Command) => add(cli, command, flags));
}

async function add(cli: Cli, command: Command, flags: Flags): Promise<void> {
  const { url, email } = flags;
  if ((url === undefined) === (email === undefined)) {
    throw new UsageError('Say who is to be told: either --url or --email.');
  }
  const who =
    url === undefined
      ? ({ channel: 'email', target: email ?? '' } as const)
      : ({ channel: 'webhook', target: url } as const);
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    const { config, db } = session.system;
    const wish = { ...who, outcomes: flags.on, kinds: flags.type };
    const made = await addSubscription(db, environmentId, wish, readDeliveryPolicy(config));
    const { subscription, secret } = made;
    if (flags.json) {
      const shown = secret === null ? {} : { secret };
      return cli.terminal.json({ ...renderSubscription(subscription), ...shown });
    }
    const id = subscription.subscriptionId;
    if (secret === null) return cli.terminal.print(`Subscription ${id}: ${subscription.target} is told.`);
    cli.terminal.note(`Subscription ${id}. Its secret, shown only this once:`);
    cli.terminal.print(secret);
    cli.terminal.note(`To try it: sluice notifications test ${id}`);
  });
}
