import type { Command } from 'commander';
import type { Scope } from '../../domain/scope.ts';
import { createApiKey } from '../../postgres/stores/api-keys.ts';
import type { Cli } from '../cli.ts';
import { parseExpiry, parseScopes, printIssued } from '../keys.ts';
import { requireEnvironment, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly label: string;
  readonly scopes?: Scope[];
  readonly expires?: Date;
  readonly json: boolean;
}

export function addKeysCreateCommand(keys: Command, cli: Cli): void {
  keys
    .command('create')
    .summary('make a key')
    .description('Makes a key and shows it, this once. It is the only thing on standard output.')
    .option('--label <text>', 'what it is for', 'made by sluice keys create')
    .option('--scopes <list>', 'of ingest, import, export, read, delete; by default all', parseScopes)
    .option('--expires <when>', 'a time from now such as 90d, or a date; by default never', parseExpiry)
    .option('--env <name>', 'environment', 'default')
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice keys create --label nightly --scopes import,read --expires 90d\n  $ KEY=$(sluice keys create --env staging)',
    )
    .action((flags: Flags, command: Command) => create(cli, command, flags));
}

async function create(
  cli: Cli,
  command: Command,
  { env, label, scopes, expires, json }: Flags,
): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, env);
    const wish = { label, expiresAt: expires ?? null, ...(scopes === undefined ? {} : { scopes }) };
    printIssued(cli.terminal, await createApiKey(session.system.db, environmentId, wish), json);
  });
}
