import { inputError } from '../base/errors.ts';
import type { SourceFormat, SourceOptions } from './source.ts';
import { keyOf, type SourceOptionName, sourceOptionNames, sourceOptions } from './source-options.ts';

/* Which options of a file go together, and how messages name them. */

const namedMap = /\bmap=(Their Header|1)=(\w+)/g;
const namedOption = new RegExp(`\\b(${[...sourceOptionNames, 'preset', 'entity'].join('|')})=([\\w-]*)`, 'g');

/** A message that names options as the query has them, `header=none`, with the flags of the command line in their place. */
export function withFlags(message: string): string {
  return message
    .replace(namedOption, (_, name: string, value: string) => {
      const flag = flagOf(name);
      const isBoolean = sourceOptions[name as SourceOptionName]?.type === 'boolean';
      return value === '' || isBoolean ? flag : `${flag} ${value}`;
    })
    .replace(namedMap, '--map "$1=$2"');
}

/** Names the options in a message as a file in YAML does. */
export function withKeys(message: string): string {
  return message
    .replace(
      namedOption,
      (_, name: string, value: string) => `\`${name}:${value === '' ? '' : ` ${value}`}\``,
    )
    .replace(namedMap, '`map: { "$1": $2 }`');
}

export function flagOf(name: string): string {
  return `--${name.replaceAll('_', '-')}`;
}

export interface SourceProblem {
  readonly name: SourceOptionName;
  /** Goes on from the name. */
  readonly what: string;
}

export function findContradictions(source: SourceOptions): SourceProblem[] {
  const { quote, comment = '', header, headerRows, mirror } = source;
  const delimiter = source.delimiter === 'blanks' ? ' ' : (source.delimiter ?? '');
  const isPart = (mark: string) => mark !== '' && delimiter.includes(mark);
  const startsWith = (mark: string) => mark !== '' && comment.startsWith(mark);
  const checks: readonly (readonly [isWrong: boolean, name: SourceOptionName, what: string])[] = [
    [isPart(quote ?? ''), 'quote', 'is part of the delimiter'],
    [source.escape === '\\' && isPart('\\'), 'escape', 'is part of the delimiter'],
    [
      !['', '\\', quote ?? ''].includes(source.escape ?? ''),
      'escape',
      `must be ${
        quote === '' ? 'none or a backslash, as quote is none' : `none, a backslash or ${quote}, as quote is`
      }`,
    ],
    [startsWith(delimiter), 'comment', 'starts with the delimiter'],
    [startsWith(quote ?? '"'), 'comment', 'starts with the quote character'],
    [header === 'none' && headerRows !== undefined, 'header_rows', 'has no effect where header is none'],
    [mirror !== undefined && source.existing === 'keep', 'existing', 'must be replace in a mirror'],
    ...(['max_removed', 'mirror_despite_rejects'] as const).map(
      (name) =>
        [
          mirror === undefined && source[keyOf(name)] !== undefined,
          name,
          'has no effect without mirror',
        ] as const,
    ),
  ];
  return checks.filter(([isWrong]) => isWrong).map(([, name, what]) => ({ name, what }));
}

/** Formats that an option is for; one that is not listed is for all. */
const formatsOf: Readonly<Partial<Record<SourceOptionName, readonly SourceFormat[]>>> = {
  encoding: ['csv', 'ndjson', 'json'],
  records: ['json'],
  sheet: ['xlsx'],
  ...forEach(['csv'], ['delimiter', 'quote', 'escape', 'comment', 'apostrophes']),
  ...forEach(
    ['csv', 'xlsx'],
    ['header', 'header_rows', 'skip_rows', 'skip_footer', 'null', 'ragged', 'types'],
  ),
};

function forEach(formats: readonly SourceFormat[], names: readonly SourceOptionName[]) {
  return Object.fromEntries(names.map((name) => [name, formats]));
}

const formatWords: Readonly<Record<string, string>> = {
  csv: 'a CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  parquet: 'a Parquet file',
  xlsx: 'a workbook',
};

/** @throws InputError `invalid_field` for the first option that a file of this format has no use for. */
export function requireFitting(source: SourceOptions, format: SourceFormat): void {
  const name = sourceOptionNames.find(
    (each) => source[keyOf(each)] !== undefined && formatsOf[each]?.includes(format) === false,
  );
  if (name === undefined) return;
  const meant = formatsOf[name]?.map((each) => formatWords[each]).join(' or ');
  const message = `${name} says how to read ${meant}; the file was read as ${formatWords[format]}`;
  throw inputError('invalid_field', message, name);
}
