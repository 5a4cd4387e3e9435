import { runDemo } from '../../examples/demo/demo.ts';
import { defineCommand, parsed } from './define-command.ts';
import { parseCount } from './parse.ts';

export const demo = defineCommand({
  name: 'demo',
  summary: 'see it work, on data made up for the purpose',
  description:
    'Starts the whole service in a temporary folder, on any free ports, makes up companies and users with a handful of\n' +
    'bad rows, loads them over HTTP, tracks events, exports a segment, shows what became of it all, and removes everything\n' +
    'again.',
  options: {
    users: parsed('--users <n>', 'how many', parseCount, 200_000),
    companies: parsed('--companies <n>', 'how many', parseCount, 5_000),
    events: parsed('--events <n>', 'how many', parseCount, 500_000),
  },
  examples: ['sluice demo', 'sluice demo --users 1000000'],
  run: ({ cli, command, flags }) => runDemo(cli, command, flags),
});
