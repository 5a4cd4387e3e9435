import type { Command } from 'commander';
import { openSendContext } from '../../../jobs/deliver-notification.ts';
import { sendTest } from '../../notifications/deliveries.ts';
import type { Cli } from '../cli.ts';
import { exitCodes } from '../exit-codes.ts';
import { requireNumber } from '../notifications/parse-flags.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly json: boolean;
}

export function addNotificationsTestCommand(notifications: Command, cli: Cli): void {
  notifications
    .command('test')
    .summary('send a ping now')
    .description('Sends an event of type `ping` from this process, once, and says how that went.')
    .argument('<id>', 'as `sluice notifications list` shows it')
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice notifications test 3')
    .action((id: string, flags: Flags, command: Command) => test(cli, command, id, flags));
}

async function test(cli: Cli, command: Command, text: string, { env, json }: Flags): Promise<void> {
  const id = requireNumber(text, 'subscription');
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, env);
    const sender = openSendContext(session.system);
    const { deliveryId, outcome, status, error, tookMs } = await sendTest(sender, environmentId, id).finally(
      () => sender.mail.close(),
    );
    const delivered = outcome === 'delivered';
    if (!delivered) process.exitCode = exitCodes.failed;
    if (json) {
      return cli.terminal.json({ delivery_id: deliveryId, delivered, status, error, took_ms: tookMs });
    }
    const answer = status === null ? '' : `, HTTP ${status}`;
    if (delivered) cli.terminal.print(`Delivered${answer}, in ${tookMs} ms.`);
    else cli.terminal.print(`Not delivered: ${error}`);
  });
}
