import { inputError } from './errors.ts';
import type { SourceFormat, SourceOptions } from './source.ts';
import { type SourceOptionName, sourceOptionNames, sourceOptions } from './source-options.ts';

export interface SourceProblem {
  readonly name: SourceOptionName;
  /** Goes on from the name. */
  readonly what: string;
}

export function findContradictions(source: SourceOptions): SourceProblem[] {
  const { quote, comment = '', header, headerRows, strictHeader } = source;
  const delimiter = source.delimiter === 'blanks' ? ' ' : (source.delimiter ?? '');
  const isPart = (mark: string) => mark !== '' && delimiter.includes(mark);
  const startsWith = (mark: string) => mark !== '' && comment.startsWith(mark);
  const checks: readonly (readonly [isWrong: boolean, name: SourceOptionName, what: string])[] = [
    [isPart(quote ?? ''), 'quote', 'is part of the delimiter'],
    [source.escape === '\\' && isPart('\\'), 'escape', 'is part of the delimiter'],
    [!['', '\\', quote ?? ''].includes(source.escape ?? ''), 'escape', `must be ${escapesOf(quote)}`],
    [startsWith(delimiter), 'comment', 'starts with the delimiter'],
    [startsWith(quote ?? '"'), 'comment', 'starts with the quote character'],
    [header === 'none' && headerRows !== undefined, 'header_rows', 'says nothing where header is none'],
    [header === 'none' && strictHeader === true, 'strict_header', 'says nothing where header is none'],
  ];
  return checks.filter(([isWrong]) => isWrong).map(([, name, what]) => ({ name, what }));
}

function escapesOf(quote: string | undefined): string {
  return quote === ''
    ? 'none or a backslash, as quote is none'
    : `none, a backslash or ${quote}, as quote is`;
}

const text = ['csv', 'ndjson', 'json'] as const;
const tables = ['csv', 'xlsx'] as const;
const formatsOf: Readonly<Record<SourceOptionName, readonly string[]>> = {
  encoding: text,
  delimiter: ['csv'],
  quote: ['csv'],
  escape: ['csv'],
  header: tables,
  header_rows: tables,
  skip_rows: tables,
  skip_footer: tables,
  comment: ['csv'],
  null: tables,
  ragged: tables,
  strict_header: tables,
  stray_quotes: ['csv'],
  apostrophes: ['csv'],
  sheet: ['xlsx'],
  records: ['json'],
};

const formatWords: Readonly<Record<string, string>> = {
  csv: 'a CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  parquet: 'a Parquet file',
  avro: 'an Avro file',
  xlsx: 'a workbook',
};

/** @throws InputError `invalid_field` for the first option that a file of this format has no use for. */
export function requireFitting(source: SourceOptions, format: SourceFormat): void {
  const name = sourceOptionNames.find(
    (each) => source[sourceOptions[each].key] !== undefined && !formatsOf[each].includes(format),
  );
  if (name === undefined) return;
  const meant = formatsOf[name].map((each) => formatWords[each]).join(' or ');
  const message = `${name} says how to read ${meant}; the file was read as ${formatWords[format]}`;
  throw inputError('invalid_field', message, name);
}
