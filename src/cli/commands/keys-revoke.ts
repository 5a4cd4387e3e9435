import type { Command } from 'commander';
import { revokeApiKey } from '../../postgres/stores/api-keys.ts';
import type { Cli } from '../cli.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly json: boolean;
}

export function addKeysRevokeCommand(keys: Command, cli: Cli): void {
  keys
    .command('revoke')
    .summary('refuse a key from now on')
    .description('Refuses a key from now on, for good. Revoking it again does no harm.')
    .argument('<key-id>', 'as `sluice keys list` shows it')
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice keys revoke 0tzwkpc87gq5')
    .action((keyId: string, flags: Flags, command: Command) => revoke(cli, command, keyId, flags));
}

async function revoke(cli: Cli, command: Command, keyId: string, { env, json }: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, env);
    await revokeApiKey(session.system.db, environmentId, keyId);
    if (json) cli.terminal.json({ key_id: keyId, status: 'revoked' });
    else cli.terminal.print(`Key ${keyId} is refused from now on.`);
  });
}
