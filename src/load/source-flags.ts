/** The flags that say how a file is written, and what its records are. */

import { InvalidArgumentError } from 'commander';
import { uuidPattern } from '../base/validation.ts';
import { choice, flag, type OptionOf, parsed } from '../cli/define-command.ts';
import { UsageError } from '../cli/errors.ts';
import { type ColumnMap, readColumnPairs } from '../domain/column-map.ts';
import { entities } from '../domain/entity.ts';
import { presets, type SourceOptions, sourceFormats } from '../domain/source.ts';
import {
  type GivenSource,
  type SourceOption,
  type SourceOptionName,
  sourceOptionNames,
  sourceOptionProblem,
  sourceOptions,
  toSourceOptions,
} from '../domain/source-options.ts';
import { findContradictions, flagOf } from '../domain/source-rules.ts';

const heading = 'How the files are written, if detection is not enough:';

export const sourceFlags = Object.fromEntries(
  sourceOptionNames.map((name) => [name, sourceFlag(name)]),
) as Readonly<Record<SourceOptionName, OptionOf<unknown>>>;

export const fileFlags = {
  entity: choice('--entity <entity>', 'what the records are; default: from their columns', entities),
  map: parsed(
    '--map <theirs=ours>',
    'rename a column, for example --map "Customer ID=user_id", or --map 1=user_id where no record names them; repeatable',
    collectMap,
    {},
  ),
  preset: choice('--preset <product>', 'the product that exported the files', presets),
  format: choice('--format <format>', 'default: detected', sourceFormats),
  ...sourceFlags,
};

export const optionsOfFlag = parsed(
  '--options-of <job_id>',
  'take options that are not given from an earlier load',
  (text) => {
    if (!new RegExp(uuidPattern).test(text))
      throw new InvalidArgumentError('It must be the job_id of an earlier load.');
    return text.toLowerCase();
  },
);

function sourceFlag(name: SourceOptionName): OptionOf<unknown> {
  const made = createFlag(name, sourceOptions[name]);
  made.option.helpGroup(heading);
  return made;
}

function createFlag(
  name: SourceOptionName,
  { type, argument, description }: SourceOption,
): OptionOf<unknown> {
  if (type === 'boolean') return flag(flagOf(name), description);
  const flags = `${flagOf(name)} <${argument}>`;
  if (type !== 'array') return parsed(flags, description, (text) => check(name, text));
  type Texts = readonly string[] | undefined;
  return parsed<Texts>(flags, description, (text, earlier = []) => check(name, [...earlier, text]));
}

function check<T>(name: SourceOptionName, value: T): T {
  const problem = sourceOptionProblem(name, value);
  if (problem !== null) throw new InvalidArgumentError(`It ${problem}.`);
  return value;
}

export function readSourceFlags(given: GivenSource): SourceOptions {
  const source = toSourceOptions(given);
  const problems = findContradictions(source).map(({ name, what }) => `${flagOf(name)} ${what}.`);
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
