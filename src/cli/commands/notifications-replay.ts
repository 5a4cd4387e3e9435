import type { Command } from 'commander';
import { replayDeliveries } from '../../notifications/deliveries.ts';
import { ringForDeliveries } from '../../notifications/record-end.ts';
import type { Replay } from '../../postgres/stores/deliveries.ts';
import type { Cli } from '../cli.ts';
import { UsageError } from '../exit-codes.ts';
import { formatCount } from '../format-numbers.ts';
import { parseSince, requireNumber } from '../notifications/parse-flags.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly since?: Date;
  readonly failed: boolean;
  readonly json: boolean;
}

export function addNotificationsReplayCommand(notifications: Command, cli: Cli): void {
  notifications
    .command('replay')
    .summary('send something once more')
    .description(
      'Makes a delivery due again, under the id that it had, with as many tries as a new one: one of them, or all since\n' +
        'then that were given up. Workers send it.',
    )
    .argument('[delivery]', 'as `sluice notifications deliveries` shows it')
    .option('--failed', 'all that were given up', false)
    .option('--since <when>', 'with --failed: how long ago, such as 24h, or a date', parseSince)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice notifications replay 42\n  $ sluice notifications replay --failed --since 24h',
    )
    .action((delivery: string | undefined, flags: Flags, command: Command) =>
      replay(cli, command, delivery, flags),
    );
}

async function replay(cli: Cli, command: Command, text: string | undefined, flags: Flags): Promise<void> {
  const wanted = readWanted(text, flags);
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    const due = await replayDeliveries(session.system.db, environmentId, wanted);
    await ringForDeliveries(session.system, due);
    if (flags.json) cli.terminal.json(due.map(({ deliveryId }) => ({ delivery_id: deliveryId })));
    else cli.terminal.print(`Due again: ${formatCount(due.length)}.`);
  });
}

function readWanted(text: string | undefined, { failed, since }: Flags): Replay {
  if (text !== undefined && !failed && since === undefined) {
    return { deliveryId: requireNumber(text, 'delivery') };
  }
  if (text === undefined && failed && since !== undefined) return { failedSince: since };
  throw new UsageError('Say what to send again: the number of a delivery, or --failed --since 24h.');
}
