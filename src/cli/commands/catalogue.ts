import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addCatalogueApplyCommand } from './catalogue-apply.ts';
import { addCatalogueExportCommand } from './catalogue-export.ts';
import { addCatalogueShowCommand } from './catalogue-show.ts';

export function addCatalogueCommand(program: Command, cli: Cli): void {
  const catalogue = program
    .command('catalogue')
    .summary('segments, surveys, features …: apply, show, export')
    .description(
      'What you define for an environment: segments, surveys, embeds, resource center modules, checklists and features.\n' +
        'It is written in one file; the lookups of the HTTP interface list it, and exports are filtered by it.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice catalogue apply catalogue.yaml --dry-run\n  $ sluice catalogue show',
    );
  addCatalogueApplyCommand(catalogue, cli);
  addCatalogueShowCommand(catalogue, cli);
  addCatalogueExportCommand(catalogue, cli);
}
