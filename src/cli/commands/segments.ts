import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addSegmentsListCommand } from './segments-list.ts';
import { addSegmentsPreviewCommand } from './segments-preview.ts';

export function addSegmentsCommand(program: Command, cli: Cli): void {
  const segments = program
    .command('segments')
    .summary('segments: list them, and see who is in one')
    .description(
      'Segments are defined in the catalogue (`sluice catalogue`), and exports are filtered by them.',
    )
    .addHelpText('after', '\nExamples:\n  $ sluice segments list\n  $ sluice segments preview power-users');
  addSegmentsListCommand(segments, cli);
  addSegmentsPreviewCommand(segments, cli);
}
