import { resolve } from 'node:path';
import { type Setting, withoutSecrets } from '../setting.ts';
import { settings } from '../settings.ts';
import { defineCommand, flag, listenOptions } from './define-command.ts';
import { type Cli, flagName, readFlags, readSettings } from './settings.ts';
import { printTable } from './terminal.ts';

export const config = defineCommand({
  name: 'config',
  summary: 'the settings in force, and where each comes from',
  description:
    'Shows every setting with the value in force and where it comes from: a flag, the\n' +
    'environment, the file .env of this folder, or the default; the first of them that\n' +
    'has it wins. Secrets are not shown. What each means: docs/configuration.md, or\n' +
    '--example.',
  options: {
    ...listenOptions,
    example: flag('--example', 'print all defaults with their meaning, as a .env file'),
  },
  json: true,
  details: 'Exit code: 0; 2 if a setting is wrong.',
  examples: [
    'sluice config',
    `sluice config --json | jq '.[] | select(.source != "default")'`,
    'sluice config --example > .env',
  ],
  run: ({ cli, command, flags, terminal, json }) => {
    if (flags.example) return void terminal.write(renderExample());
    const given = readFlags(command);
    const inForce = Object.values(settings).map((setting) => lookUp(setting, cli, given));
    if (json) terminal.json(inForce);
    else {
      printTable(
        terminal,
        { setting: ({ name }) => name, from: ({ source }) => source, value: ({ value }) => value },
        inForce,
      );
      const file = resolve('.env');
      terminal.inform(cli.fromDotEnv.size > 0 ? `${file} is read.` : `No setting comes from ${file}.`);
    }
    // The complaint, and the exit code of it.
    readSettings(cli, command);
  },
});

const heading = `# Every setting of sluice, with its default. A copy called .env is read from the folder in which sluice is run; the
# environment wins over it, and flags over both. \`sluice config\` shows what is in force.
# Written by \`sluice config --example\`; a test holds it to src/config.ts.
`;

/** The text of .env.example. */
function renderExample(): string {
  const entries = Object.values(settings).map(
    ({ name, fallback, meaning }) => `# ${meaning}\n${name}=${fallback}\n`,
  );
  return `${heading}\n${entries.join('\n')}`;
}

/** The source of a setting's value. */
type Source = 'default' | 'environment' | '.env' | `--${string}`;

interface InForce {
  readonly name: string;
  /** The value as written; secrets are not shown. */
  readonly value: string;
  readonly source: Source;
  readonly meaning: string;
}

function lookUp(setting: Setting, cli: Cli, flags: Readonly<Record<string, string>>): InForce {
  const { name, fallback, meaning } = setting;
  const flag = flags[name];
  const given = flag ?? cli.processEnv[name] ?? '';
  const file = cli.processEnv[`${name}_FILE`] ?? '';
  if (given === '' && file !== '') {
    return { name, value: `what ${file} holds`, source: sourceOf(`${name}_FILE`, false, cli), meaning };
  }
  const text = given === '' ? fallback : given;
  const value = name === settings.dataDir.name ? resolve(text) : text;
  const source = given === '' ? 'default' : sourceOf(name, flag !== undefined, cli);
  return { name, value: withoutSecrets(setting, value), source, meaning };
}

function sourceOf(name: string, isFlag: boolean, { fromDotEnv }: Cli): Source {
  if (isFlag) return `--${flagName(name)}`;
  return fromDotEnv.has(name) ? '.env' : 'environment';
}
