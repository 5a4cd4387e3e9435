import type { Command } from 'commander';
import { listSubscriptions, type Subscription } from '../../postgres/stores/notifications.ts';
import type { Cli } from '../cli.ts';
import { renderSubscription } from '../notifications/render-subscription.ts';
import { requireEnvironment, withSession } from '../session/session.ts';
import { printable, renderTable } from '../table.ts';

interface Flags {
  readonly env: string;
  readonly json: boolean;
}

const columns = [
  { title: 'id', align: 'right' },
  { title: 'who' },
  { title: 'on' },
  { title: 'types' },
  { title: 'status' },
] as const;

export function addNotificationsListCommand(notifications: Command, cli: Cli): void {
  notifications
    .command('list')
    .summary('who is told')
    .description('Lists the subscriptions of an environment, the disabled ones too; never their secrets.')
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice notifications list --env staging')
    .action((flags: Flags, command: Command) => list(cli, command, flags));
}

async function list(cli: Cli, command: Command, { env, json }: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, env);
    const found = await listSubscriptions(session.system.db, environmentId);
    if (json) return cli.terminal.json(found.map(renderSubscription));
    if (found.length === 0) return cli.terminal.note(`Nobody is told of the jobs of ${env}.`);
    for (const line of renderTable(columns, found.map(cells))) cli.terminal.print(line);
  });
}

function cells({ subscriptionId, target, outcomes, kinds, disabled }: Subscription): string[] {
  const status = disabled === null ? 'live' : `disabled: ${disabled.reason}`;
  return [
    String(subscriptionId),
    printable(target, 60),
    outcomes.join(','),
    kinds.join(','),
    printable(status, 60),
  ];
}
