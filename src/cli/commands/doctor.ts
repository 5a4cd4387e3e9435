import type { Command } from 'commander';
import { examine } from '../../doctor/examine.ts';
import type { Cli } from '../cli.ts';
import { printFindings } from '../doctor/print-findings.ts';
import { exitCodes } from '../exit-codes.ts';
import { readSettings } from '../settings.ts';

export function addDoctorCommand(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .summary('look at all that sluice stands on, and say what to do')
    .description(
      'Looks at PostgreSQL (version, rights, settings, clock, migrations), Redis, storage, disks, mail server, inbox, schedules\n' +
        'and settings, and says of each what it found and what to do. Starts no database, applies no migration, sends no message; the storage is\n' +
        'tried with one small file, which is removed.',
    )
    .option('--json', 'print the findings as JSON', false)
    .addHelpText(
      'after',
      `
Exit code: 0 nothing failed, though there may be warnings; 1 something failed;
2 a setting is wrong.

Examples:
  $ sluice doctor
  $ DATABASE_URL=postgres://… REDIS_URL=redis://… sluice doctor
  $ sluice doctor --json | jq '.[] | select(.status != "ok")'`,
    )
    .action((flags: { readonly json: boolean }, command: Command) => doctor(cli, command, flags.json));
}

async function doctor(cli: Cli, command: Command, json: boolean): Promise<void> {
  const findings = await examine(readSettings(cli, command).config, cli.environment);
  if (json) cli.terminal.json(findings);
  else printFindings(cli.terminal, findings);
  const isBad = findings.some(({ status }) => status === 'failed');
  process.exitCode = isBad ? exitCodes.failed : exitCodes.ok;
}
