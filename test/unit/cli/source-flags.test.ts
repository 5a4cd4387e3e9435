import { Command, CommanderError } from 'commander';
import { describe, expect, test } from 'vitest';
import { readSourceFlags, sourceFlags } from '../../../src/load/source-flags.ts';

function createCommand(): Command {
  const command = new Command('import').exitOverride().configureOutput({ writeErr: () => undefined });
  for (const { option } of Object.values(sourceFlags)) command.addOption(option);
  return command;
}

function read(...args: string[]) {
  const command = createCommand().parse(args, { from: 'user' });
  const given = command.opts<Record<string, unknown>>();
  const flags = Object.entries(sourceFlags).map(([name, flag]) => [
    name,
    flag.read(given[flag.option.attributeName()]),
  ]);
  return readSourceFlags(Object.fromEntries(flags));
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
    expect(read('--mirror', 'remove', '--mirror-despite-rejects')).toEqual({
      mirror: 'remove',
      mirrorDespiteRejects: true,
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
