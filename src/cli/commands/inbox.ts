import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addInboxStatusCommand } from './inbox-status.ts';

export function addInboxCommand(program: Command, cli: Cli): void {
  const inbox = program
    .command('inbox')
    .summary('look at the folder that is watched for files')
    .description(
      'Looks at the inbox: INBOX_DIR/<environment>/, whose files the workers of `sluice start` and `sluice work` load.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice inbox status\n  $ sluice inbox status --env default --json',
    );
  addInboxStatusCommand(inbox, cli);
}
