/** The flags that say how a file is written. */
import { InvalidArgumentError } from 'commander';
import type { SourceOptions } from '../domain/source.ts';
import { findContradictions } from '../domain/source-conflicts.ts';
import {
  flagOf,
  type GivenSource,
  type SourceOption,
  type SourceOptionName,
  sourceOptionNames,
  sourceOptionProblem,
  sourceOptions,
  toSourceOptions,
} from '../domain/source-options.ts';
import { UsageError } from './errors.ts';
import { flag, type OptionOf, parsed } from './options.ts';

const heading = 'How the files are written, where looking at them is not enough:';

export const sourceFlags = Object.fromEntries(
  sourceOptionNames.map((name) => [name, sourceFlag(name)]),
) as Readonly<Record<SourceOptionName, OptionOf<unknown>>>;

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

/** @throws UsageError where they contradict each other. */
export function readSourceFlags(given: GivenSource): SourceOptions {
  const source = toSourceOptions(given);
  const problems = findContradictions(source).map(({ name, what }) => `${flagOf(name)} ${what}.`);
  if (problems.length > 0) throw new UsageError(problems.join(' '));
  return source;
}
