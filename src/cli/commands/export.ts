import { type Command, Option } from 'commander';
import { compressions, exportFormats } from '../../domain/export.ts';
import type { Cli } from '../cli.ts';
import { collect, type ExportFlags } from '../export/export-flags.ts';
import { runExportCommand } from '../export/run-export-command.ts';
import { addExportVerifyCommand } from './export-verify.ts';

export function addExportCommand(program: Command, cli: Cli): void {
  const command = program
    .command('export')
    .summary('write users, companies and events to files')
    .description(
      'Writes users, companies and events, as they are at one moment, to files in a folder: all of them, verified, or none.\n' +
        'A server need not run; if one does, its workers do the work.',
    )
    .option('--out <folder>', 'where to write the files; it must be empty, or not there yet')
    .option('--from <date>', 'a day such as 2026-11-20, or an ISO 8601 instant; default: the beginning')
    .option('--to <date>', 'a day, which is included, or an instant, which is not; default: now')
    .option(
      '--event-type <type>',
      'users, companies, events, or the key of an event; repeatable',
      collect,
      [] as string[],
    )
    .option('--user <id>', 'only this user; repeatable', collect, [] as string[])
    .option('--company <id>', 'only this company; repeatable', collect, [] as string[])
    .option('--segment <id>', 'only the users of this segment, and what belongs to them')
    .option(
      '--exclude <term>',
      'leave out user:ID, company:ID, event:KEY, segment:ID or property:KEY, with * for any text; repeatable',
      collect,
      [] as string[],
    )
    .addOption(new Option('--format <format>', 'of the files').choices(exportFormats).default('ndjson'))
    .addOption(
      new Option('--compression <compression>', 'default: gzip, none for parquet').choices(compressions),
    )
    .option('--no-escape-formulas', 'leave cells as they are that a spreadsheet would run (CSV)')
    .option('--env <name>', 'environment to export', 'default')
    .option('--json', 'print the result as JSON', false)
    .option('-q, --quiet', 'no progress', false)
    .addHelpText(
      'after',
      `
Exit code: 0 written and verified; 1 failed; 2 wrong options; 130 stopped by
Ctrl-C, which cancels the export.

Examples:
  $ sluice export --out backup
  $ sluice export --out november --from 2026-11-01 --to 2026-11-30 --format csv
  $ sluice export --out customers --event-type users --exclude "user:test-*"
  $ sluice export --out backup --json | jq .files
  $ sluice export verify backup`,
    )
    .action((flags: ExportFlags, own: Command) => runExportCommand(cli, own, flags));
  addExportVerifyCommand(command, cli);
}
