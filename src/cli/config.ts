import { resolve } from 'node:path';
import { showSettings } from '../config.ts';
import { settings } from '../settings.ts';
import { defineCommand, flag, listenOptions } from './define-command.ts';
import { flagName, readFlags, readSettings } from './settings.ts';
import { printRecords } from './terminal.ts';

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
    const isInDotEnv = (name: string): boolean =>
      cli.fromDotEnv.has(name) || cli.fromDotEnv.has(`${name}_FILE`);
    const inForce = showSettings(cli.processEnv, readFlags(command)).map(({ name, source, ...rest }) => {
      if (source === 'flag') return { name, ...rest, source: `--${flagName(name)}` };
      return { name, ...rest, source: source !== 'default' && isInDotEnv(name) ? '.env' : source };
    });
    if (json) terminal.json(inForce);
    else {
      printRecords(terminal, inForce, ['name', 'source', 'value']);
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
