import type { Command } from 'commander';
import { type ApiKey, listApiKeys } from '../../postgres/stores/api-keys.ts';
import type { Cli } from '../cli.ts';
import { renderKey, statusOf } from '../keys.ts';
import { requireEnvironment, withSession } from '../session/session.ts';
import { printable, renderTable } from '../table.ts';

interface Flags {
  readonly env: string;
  readonly json: boolean;
}

const columns = [
  { title: 'key id' },
  { title: 'status' },
  { title: 'label' },
  { title: 'scopes' },
  { title: 'expires' },
];

export function addKeysListCommand(keys: Command, cli: Cli): void {
  keys
    .command('list')
    .summary('all keys of an environment')
    .description(
      'Lists the keys of an environment, the expired and revoked ones too; never the keys themselves.',
    )
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText('after', '\nExamples:\n  $ sluice keys list --env staging')
    .action((flags: Flags, command: Command) => list(cli, command, flags));
}

async function list(cli: Cli, command: Command, { env, json }: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, env);
    const keys = await listApiKeys(session.system.db, environmentId);
    if (json) return cli.terminal.json(keys.map(renderKey));
    if (keys.length === 0)
      return cli.terminal.note(`Environment ${env} has no key; \`sluice keys create\` makes one.`);
    for (const line of renderTable(columns, keys.map(cells))) cli.terminal.print(line);
  });
}

function cells(key: ApiKey): string[] {
  const expires = key.expiresAt?.toISOString().slice(0, 16) ?? 'never';
  return [key.keyId, statusOf(key), printable(key.label, 40), key.scopes.join(','), expires];
}
