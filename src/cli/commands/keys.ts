import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addKeysCreateCommand } from './keys-create.ts';
import { addKeysListCommand } from './keys-list.ts';
import { addKeysRevokeCommand } from './keys-revoke.ts';
import { addKeysRotateCommand } from './keys-rotate.ts';

export function addKeysCommand(program: Command, cli: Cli): void {
  const keys = program
    .command('keys')
    .summary('API keys: create, list, revoke, rotate')
    .description(
      'The keys that open an environment. Only a digest is kept: a key is shown once, when it is made.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice keys create --label "nightly import" --scopes import,read\n  $ sluice keys list',
    );
  addKeysCreateCommand(keys, cli);
  addKeysListCommand(keys, cli);
  addKeysRevokeCommand(keys, cli);
  addKeysRotateCommand(keys, cli);
}
