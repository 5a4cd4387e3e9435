import { Command, CommanderError } from 'commander';
import { describe, expect, test } from 'vitest';
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

function read(...args: string[]) {
  const { command, flags } = createCommand();
  const given = command.parse(args, { from: 'user' }).opts<Record<string, unknown>>();
  const read = Object.entries(flags).map(([name, flag]) => [
    name,
    flag.read(given[flag.option.attributeName()]),
  ]);
  return readSourceFlags(table, Object.fromEntries(read));
}

describe('the flags of how a file is written', () => {
  // proves: source-options
  test('are the options of an upload, with dashes', () => {
    expect(read()).toEqual({});
    expect(
      read(
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
  ])('%j are refused with what they must be', (args, message) => {
    expect(() => read(...args)).toThrow(CommanderError);
    expect(() => read(...args)).toThrow(message);
  });
});
