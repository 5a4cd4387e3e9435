import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addNotificationsAddCommand } from './notifications-add.ts';
import { addNotificationsDeliveriesCommand } from './notifications-deliveries.ts';
import { addNotificationsListCommand } from './notifications-list.ts';
import { addNotificationsRemoveCommand } from './notifications-remove.ts';
import { addNotificationsReplayCommand } from './notifications-replay.ts';
import { addNotificationsRotateCommand } from './notifications-rotate.ts';
import { addNotificationsTestCommand } from './notifications-test.ts';

export function addNotificationsCommand(program: Command, cli: Cli): void {
  const notifications = program
    .command('notifications')
    .summary('webhooks and e-mail when jobs end: add, list, test, replay …')
    .description('Who is told when a load, an export or a run of a schedule ends. A server need not run.')
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice notifications add --url https://example.com/hooks\n  $ sluice notifications deliveries --failed',
    );
  addNotificationsAddCommand(notifications, cli);
  addNotificationsListCommand(notifications, cli);
  addNotificationsTestCommand(notifications, cli);
  addNotificationsRotateCommand(notifications, cli);
  addNotificationsRemoveCommand(notifications, cli);
  addNotificationsDeliveriesCommand(notifications, cli);
  addNotificationsReplayCommand(notifications, cli);
}
