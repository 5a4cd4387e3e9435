import { InvalidArgumentError } from 'commander';
import { uuidPattern } from '../base/validation.ts';
import { choice, flag, type OptionOf, parsed } from '../cli/define-command.ts';
import { UsageError } from '../cli/errors.ts';
import { type ColumnMap, readColumnPairs } from '../domain/column-map.ts';
import { entities } from '../domain/entity.ts';
import { flagOf, type GivenSource, type OptionTable } from '../domain/option-table.ts';
import { presets, type SourceOptions, sourceFormats } from '../domain/source.ts';

const heading = 'How the files are written, if detection is not enough:';

export function sourceFlags(table: OptionTable): Readonly<Record<never, OptionOf<unknown>>> {
  return Object.fromEntries(table.names.map((name) => [name, sourceFlag(table, name)]));
}

export const fileFlags = (table: OptionTable) => ({
  entity: choice('--entity <entity>', 'what the records are; default: from their columns', entities),
  map: parsed(
    '--map <theirs=ours>',
    'rename a column, for example --map "Customer ID=user_id", or --map 1=user_id where no record names them; repeatable',
    collectMap,
    {},
  ),
  preset: choice('--preset <product>', 'the product that exported the files', presets),
  format: choice('--format <format>', 'default: detected', sourceFormats),
  ...sourceFlags(table),
});

export const optionsOfFlag = parsed(
  '--options-of <job_id>',
  'take options that are not given from an earlier load',
  (text) => {
    if (!new RegExp(uuidPattern).test(text))
      throw new InvalidArgumentError('It must be the job_id of an earlier load.');
    return text.toLowerCase();
  },
);

function sourceFlag(table: OptionTable, name: string): OptionOf<unknown> {
  const sourceOption = createFlag(table, name);
  sourceOption.option.helpGroup(heading);
  return sourceOption;
}

function createFlag(table: OptionTable, name: string): OptionOf<unknown> {
  const { type, argument, description } = table.option(name);
  const check = <T>(value: T): T => {
    const problem = table.problem(name, value);
    if (problem !== null) throw new InvalidArgumentError(`It ${problem}.`);
    return value;
  };
  if (type === 'boolean') return flag(flagOf(name), description);
  const flags = `${flagOf(name)} <${argument}>`;
  if (type !== 'array') return parsed(flags, description, check);
  type Texts = readonly string[] | undefined;
  return parsed<Texts>(flags, description, (text, earlier = []) => check([...earlier, text]));
}

export function readSourceFlags(table: OptionTable, flags: GivenSource): SourceOptions {
  const source = table.read(flags);
  const needs = flags['optionsOf'] === undefined ? table.unmetNeeds(source) : [];
  const problems = [...table.contradictions(source), ...needs].map(
    ({ name, what }) => `${flagOf(name)} ${what}.`,
  );
  if (problems.length > 0) throw new UsageError(problems.join(' '));
  return source;
}

function collectMap(text: string, earlier: ColumnMap): ColumnMap {
  const map = readColumnPairs([text]);
  if (typeof map === 'string') {
    throw new InvalidArgumentError(
      'write "Their Header=user_id", or {"Their Header":"user_id"} in single quotes.',
    );
  }
  return { ...earlier, ...map };
}
