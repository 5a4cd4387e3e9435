import type { Command } from 'commander';
import { removeSubscription } from '../../notifications/subscriptions.ts';
import type { Cli } from '../cli.ts';
import { requireNumber } from '../notifications/parse-flags.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly json: boolean;
}

export function addNotificationsRemoveCommand(notifications: Command, cli: Cli): void {
  notifications
    .command('remove')
    .summary('tell somebody no more')
    .description(
      'Ends a subscription. What waits for it is given up; its deliveries stay listed for a while.',
    )
    .argument('<id>', 'as `sluice notifications list` shows it')
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice notifications remove 3')
    .action((id: string, flags: Flags, command: Command) => remove(cli, command, id, flags));
}

async function remove(cli: Cli, command: Command, text: string, { env, json }: Flags): Promise<void> {
  const id = requireNumber(text, 'subscription');
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, env);
    await removeSubscription(session.system.db, environmentId, id);
    if (json) cli.terminal.json({ id, removed: true });
    else cli.terminal.print(`Subscription ${id} is removed.`);
  });
}
