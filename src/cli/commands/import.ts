import { type Command, Option } from 'commander';
import { entities } from '../../domain/entity.ts';
import type { Cli } from '../cli.ts';
import { collectMap, parseMaxErrors } from '../import/parse-options.ts';
import { type ImportFlags, runImport } from '../import/run-import.ts';

export function addImportCommand(program: Command, cli: Cli): void {
  program
    .command('import')
    .summary('load files of users or companies')
    .description(
      'Loads CSV, NDJSON or JSON files, also gzipped, through the same route as the HTTP interface. A server need not\n' +
        'run; if one does, its workers do the work. Several files are loaded one after another, in this order.',
    )
    .argument('<files...>', 'files, patterns in quotes such as "data/*.csv", or - for standard input')
    .addOption(
      new Option('--entity <entity>', 'what the records are; by default their columns say it').choices(
        entities,
      ),
    )
    .option(
      '--map <theirs=ours>',
      'rename a column, for example --map "Customer ID=user_id"; repeatable',
      collectMap,
      {},
    )
    .option('--dry-run', 'check everything, write nothing but the report', false)
    .option('--max-errors <n>', 'fail once more records than this are refused: 100, or 5%', parseMaxErrors)
    .addOption(
      new Option('--if-duplicate <action>', 'when the same bytes were loaded before')
        .choices(['load', 'skip', 'reject'])
        .default('load'),
    )
    .addOption(
      new Option('--format <format>', 'by default the content says it').choices(['csv', 'ndjson', 'json']),
    )
    .option('--env <name>', 'environment to load into', 'default')
    .option('--rejects-dir <folder>', 'where to write the refused records', '.')
    .option('--no-wait', 'return once the files are accepted; a running server loads them')
    .option('--json', 'print the result as JSON', false)
    .option('-q, --quiet', 'no progress', false)
    .addHelpText(
      'after',
      `
Exit code: 0 loaded (refused records within --max-errors do not matter); 1
failed; 2 wrong options or a file that cannot be loaded as it is; 130 stopped
by Ctrl-C: what was accepted goes on when workers run again.

Examples:
  $ sluice import users.csv
  $ sluice import "exports/2026-*.csv.gz" --map "Customer ID=user_id"
  $ sluice import companies.ndjson --dry-run
  $ pg_dump-like-tool | sluice import - --format csv --max-errors 1%
  $ sluice import users.csv --json | jq .loads[0].job.counts`,
    )
    .action((files: string[], flags: ImportFlags, command: Command) => runImport(cli, command, files, flags));
}
