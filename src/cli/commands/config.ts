import type { Command } from 'commander';
import { settings } from '../../settings.ts';
import type { Cli } from '../cli.ts';
import { renderExample } from '../env-example.ts';

export function addConfigCommand(program: Command, cli: Cli): void {
  const width = Math.max(...Object.values(settings).map(({ name }) => name.length));
  const list = Object.values(settings).map(({ name, fallback, meaning }) => {
    const given = fallback === '' ? '' : ` Default: ${fallback}.`;
    return `  ${name.padEnd(width)}  ${meaning}${given}`;
  });
  program
    .command('config')
    .summary('every setting, its default and meaning')
    .description('Prints every setting there is, in the shape of a .env file.')
    .addHelpText('after', `\nSettings (variables of the environment):\n${list.join('\n')}`)
    .addHelpText('after', '\nExamples:\n  $ sluice config > .env.example')
    .action(() => cli.terminal.write(renderExample()));
}
