import type { Command } from 'commander';
import { runDemo } from '../../../examples/demo/demo.ts';
import type { DemoFlags } from '../../../examples/demo/stage.ts';
import type { Cli } from '../cli.ts';
import { parseCount } from '../import/parse-options.ts';

export function addDemoCommand(program: Command, cli: Cli): void {
  program
    .command('demo')
    .summary('see it work, on data made up for the purpose')
    .description(
      'Starts the whole service in a temporary folder, on any free ports, makes up companies and users with a handful of\n' +
        'bad rows, loads them over HTTP, tracks events, exports a segment, shows what became of it all, and removes everything\n' +
        'again.',
    )
    .option('--users <n>', 'how many', parseCount, 200_000)
    .option('--companies <n>', 'how many', parseCount, 5_000)
    .option('--events <n>', 'how many', parseCount, 500_000)
    .addHelpText('after', '\nExamples:\n  $ sluice demo\n  $ sluice demo --users 1000000')
    .action((flags: DemoFlags, command: Command) => runDemo(cli, command, flags));
}
