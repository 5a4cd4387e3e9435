import type { Command } from 'commander';
import { verifyExport } from '../../export/verify-export.ts';
import type { Cli } from '../cli.ts';
import { exitCodes } from '../exit-codes.ts';
import { formatBytes, formatCount } from '../format-numbers.ts';
import { printable } from '../table.ts';

export function addExportVerifyCommand(exports: Command, cli: Cli): void {
  exports
    .command('verify')
    .summary('compare the files of an export with its manifest')
    .description(
      'Compares the files in a folder with its manifest.json: length, SHA-256, rows, missing and additional files. Needs no database.',
    )
    .argument('<folder>')
    .addHelpText(
      'after',
      '\nExit code: 0 all is as it was written; 1 something is not; 2 no manifest.\n\nExamples:\n  $ sluice export verify backup\n  $ sluice export verify backup --json | jq .differences',
    )
    // The option --json is that of `sluice export`, which takes it wherever it stands.
    .action((folder: string, _options, command: Command) =>
      verify(cli, folder, command.optsWithGlobals<{ json?: boolean }>().json === true),
    );
}

async function verify(cli: Cli, folder: string, json: boolean): Promise<void> {
  const { terminal } = cli;
  const verdict = await verifyExport(folder);
  if (verdict.differences.length > 0) process.exitCode = exitCodes.failed;
  if (json) return terminal.json(verdict);
  for (const { filename, problem } of verdict.differences) {
    terminal.print(`${printable(filename ?? folder, 100)}: ${printable(problem, 200)}`);
  }
  const { files, rows, bytes, differences } = verdict;
  const seen = `${formatCount(files)} files, ${formatCount(rows)} rows, ${formatBytes(bytes)}`;
  terminal.print(
    differences.length === 0
      ? `${folder}: ${terminal.style('green', 'all is as it was written')}: ${seen}`
      : `${folder}: ${terminal.style('red', `${differences.length} differences`)}: ${seen}`,
  );
}
