import type { Command } from 'commander';
import { rotateApiKey } from '../../postgres/stores/api-keys.ts';
import type { Cli } from '../cli.ts';
import { parseExpiry, printIssued } from '../keys.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly oldExpires?: Date;
  readonly expires?: Date;
  readonly json: boolean;
}

export function addKeysRotateCommand(keys: Command, cli: Cli): void {
  keys
    .command('rotate')
    .summary('a new key in the place of an old one')
    .description(
      'Makes a second key with the label and scopes of the first. Both work until the old one expires or is revoked.',
    )
    .argument('<key-id>', 'the old one, as `sluice keys list` shows it')
    .option('--old-expires <when>', 'end of the old key: from now, such as 7d, or a date', parseExpiry)
    .option('--expires <when>', 'end of the new key; by default never', parseExpiry)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice keys rotate 0tzwkpc87gq5 --old-expires 7d')
    .action((keyId: string, flags: Flags, command: Command) => rotate(cli, command, keyId, flags));
}

async function rotate(cli: Cli, command: Command, keyId: string, flags: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    const dates = { oldExpiresAt: flags.oldExpires ?? null, expiresAt: flags.expires ?? null };
    printIssued(cli.terminal, await rotateApiKey(session.system.db, environmentId, keyId, dates), flags.json);
    if (flags.oldExpires === undefined)
      cli.terminal.note(`The old key still works: sluice keys revoke ${keyId}`);
  });
}
