import { Command, CommanderError } from 'commander';
import { expect, test } from 'vitest';
import type { OptionOf } from '../../../src/cli/define-command.ts';
import { OptionTable } from '../../../src/domain/option-table.ts';
import { readSourceFlags, sourceFlags } from '../../../src/load/source-flags.ts';

const table = new OptionTable([]);

function createCommand() {
  const flags: Readonly<Record<string, OptionOf<unknown>>> = sourceFlags(table);
  const command = new Command('import').exitOverride().configureOutput({ writeErr: () => undefined });
  for (const { option } of Object.values(flags)) command.addOption(option);
  return { command, flags };
}

function readArgs(...args: string[]) {
  const { command, flags } = createCommand();
  const flagValues = command.parse(args, { from: 'user' }).opts<Record<string, unknown>>();
  const entries = Object.entries(flags).map(([name, flag]) => [
    name,
    flag.read(flagValues[flag.option.attributeName()]),
  ]);
  return readSourceFlags(table, Object.fromEntries(entries));
}

// proves: source-options
test('every flag is an option of an upload, written with dashes', () => {
  expect(readArgs()).toEqual({});
  expect(
    readArgs(
      ...['--encoding', 'latin1', '--delimiter', 'semicolon', '--header', 'none', '--skip-rows', '2'],
      ...'--null NULL --null \\N --ragged pad --quote none --records data.users'.split(' '),
    ),
  ).toEqual({
    encoding: 'windows-1252',
    delimiter: ';',
    header: 'none',
    skipRows: 2,
    nulls: ['NULL', '\\N'],
    ragged: 'pad',
    quote: '',
    records: 'data.users',
  });
});

test.each([
  [['--header', '0'], /--header <which>.*It must be none, or a number from 1/],
  [['--delimiter', 'x'], /It must be comma, semicolon, tab, pipe, space, blanks/],
  [['--null', ''], /It must be a text/],
])('the flags %j are refused with the expected values', (args, message) => {
  expect(() => readArgs(...args)).toThrow(CommanderError);
  expect(() => readArgs(...args)).toThrow(message);
});
