import { Command } from 'commander';
import type { Cli } from './cli.ts';
import { addCatalogueCommand } from './commands/catalogue.ts';
import { addConfigCommand } from './commands/config.ts';
import { addDemoCommand } from './commands/demo.ts';
import { addEnvCommand } from './commands/env.ts';
import { addExportCommand } from './commands/export.ts';
import { addImportCommand } from './commands/import.ts';
import { addJobsCommand } from './commands/jobs.ts';
import { addKeysCommand } from './commands/keys.ts';
import { addMigrateCommand } from './commands/migrate.ts';
import { addServeCommand } from './commands/serve.ts';
import { addStartCommand } from './commands/start.ts';
import { addWorkCommand } from './commands/work.ts';
import { addGlobalOptions } from './settings.ts';
import { readVersion } from './version.ts';

/** The `sluice` command with all its subcommands. Parsing it runs one of them. */
export function createProgram(cli: Cli): Command {
  const program = new Command('sluice');
  program
    .description(
      'Loads product-analytics data, CSV, NDJSON and arrays, into Postgres: exactly once, and fast.',
    )
    .version(readVersion(), '-v, --version', 'print the version')
    .helpCommand('help [command]', 'show what a command does')
    .showHelpAfterError('(see --help)')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({
      writeOut: (text) => cli.terminal.print(text.replace(/\n$/, '')),
      writeErr: (text) => cli.terminal.note(text.replace(/\n$/, '')),
    })
    .exitOverride();
  addGlobalOptions(program);
  addStartCommand(program, cli);
  addImportCommand(program, cli);
  addExportCommand(program, cli);
  addJobsCommand(program, cli);
  addCatalogueCommand(program, cli);
  addKeysCommand(program, cli);
  addEnvCommand(program, cli);
  addServeCommand(program, cli);
  addWorkCommand(program, cli);
  addMigrateCommand(program, cli);
  addConfigCommand(program, cli);
  addDemoCommand(program, cli);
  return program;
}
