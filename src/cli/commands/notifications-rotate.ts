import type { Command } from 'commander';
import { rotateSecret } from '../../notifications/subscriptions.ts';
import type { Cli } from '../cli.ts';
import { parseHours, requireNumber } from '../notifications/parse-flags.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly overlap: number;
  readonly json: boolean;
}

export function addNotificationsRotateCommand(notifications: Command, cli: Cli): void {
  notifications
    .command('rotate-secret')
    .summary('a new secret for a webhook')
    .description(
      'Makes a new secret and shows it, this once. Until the overlap ends webhooks bear two signatures, one by each\n' +
        'secret, so that the receiver can change over.',
    )
    .argument('<id>', 'as `sluice notifications list` shows it')
    .option('--overlap <hours>', 'how long the old secret is good still', parseHours, 24)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice notifications rotate-secret 3 --overlap 48')
    .action((id: string, flags: Flags, command: Command) => rotate(cli, command, id, flags));
}

async function rotate(cli: Cli, command: Command, text: string, flags: Flags): Promise<void> {
  const id = requireNumber(text, 'subscription');
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    const { secret, previousUntil } = await rotateSecret(session.system.db, environmentId, id, flags.overlap);
    const until = previousUntil.toISOString();
    if (flags.json) return cli.terminal.json({ id, secret, previous_secret_until: until });
    cli.terminal.note(`The new secret of subscription ${id}, shown only this once:`);
    cli.terminal.print(secret);
    cli.terminal.note(`The old one is good until ${until}.`);
  });
}
