import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Setting } from '../../setting.ts';
import { settings } from '../../settings.ts';
import type { Cli } from '../cli.ts';
import { renderExample } from '../env-example.ts';
import { addListenOptions, flagName, readFlags, readSettings } from '../settings.ts';
import { printable, renderTable } from '../table.ts';

interface Flags {
  readonly example: boolean;
  readonly json: boolean;
}

/** Where the value of a setting comes from. */
type Source = 'default' | 'environment' | '.env' | `--${string}`;

interface InForce {
  readonly name: string;
  /** As it is written; secrets are not shown. */
  readonly value: string;
  readonly source: Source;
  readonly meaning: string;
}

const columns = [{ title: 'setting' }, { title: 'from' }, { title: 'value' }] as const;

export function addConfigCommand(program: Command, cli: Cli): void {
  addListenOptions(program.command('config'))
    .summary('the settings in force, and where each comes from')
    .description(
      'Shows every setting with the value in force and where it comes from: a flag, the\n' +
        'environment, the file .env of this folder, or the default; the first of them that\n' +
        'has it wins. Secrets are not shown. What each means: docs/configuration.md, or\n' +
        '--example.',
    )
    .option('--example', 'print all defaults with their meaning, as a .env file', false)
    .option('--json', 'print JSON', false)
    .addHelpText(
      'after',
      '\nExit code: 0; 2 if a setting is wrong.\n\nExamples:\n  $ sluice config\n' +
        '  $ sluice config --json | jq \'.[] | select(.source != "default")\'\n  $ sluice config --example > .env',
    )
    .action((flags: Flags, command: Command) => show(cli, command, flags));
}

function show(cli: Cli, command: Command, { example, json }: Flags): void {
  const { terminal } = cli;
  if (example) return void terminal.write(renderExample());
  const flags = readFlags(command);
  const inForce = Object.values(settings).map((setting) => lookUp(setting, cli, flags));
  if (json) terminal.json(inForce);
  else {
    const cells = inForce.map(({ name, source, value }) => [name, source, printable(value, 200)]);
    for (const line of renderTable(columns, cells)) terminal.print(line);
    const file = resolve('.env');
    terminal.note(cli.fromDotEnv.size > 0 ? `${file} is read.` : `No setting comes from ${file}.`);
  }
  // The complaint, and the exit code of it.
  readSettings(cli, command);
}

function lookUp(setting: Setting<unknown>, cli: Cli, flags: Readonly<Record<string, string>>): InForce {
  const { name, fallback, meaning } = setting;
  const flag = flags[name];
  const given = flag ?? cli.environment[name] ?? '';
  const file = cli.environment[`${name}_FILE`] ?? '';
  if (given === '' && file !== '') {
    return { name, value: `what ${file} holds`, source: sourceOf(`${name}_FILE`, false, cli), meaning };
  }
  const text = given === '' ? fallback : given;
  const value = name === settings.dataDir.name ? resolve(text) : text;
  const source = given === '' ? 'default' : sourceOf(name, flag !== undefined, cli);
  return { name, value: setting.secret === true ? hide(value) : hidePasswords(value), source, meaning };
}

function sourceOf(name: string, isFlag: boolean, { fromDotEnv }: Cli): Source {
  if (isFlag) return `--${flagName(name)}`;
  return fromDotEnv.has(name) ? '.env' : 'environment';
}

const hidden = '***';

function hide(value: string): string {
  return value === '' ? '' : hidden;
}

/** Up to the last `@`: a password may hold one that nobody has escaped. */
function hidePasswords(value: string): string {
  return value
    .replace(/(:\/\/[^:@/?]*:).*@/s, `$1${hidden}@`)
    .replace(/([?&][^=&]*(?:password|secret|token)[^=&]*=)[^&]*/gi, `$1${hidden}`);
}
