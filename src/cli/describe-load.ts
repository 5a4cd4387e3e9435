/** Loads as a person reads them: how the file was read, and what became of its records. */

import { countedKinds, type Tally } from '../domain/load.ts';
import type { CsvReadAs, ReadAs, SourceFormat } from '../domain/source.ts';
import { formatDuration } from '../domain/wording.ts';
import { rowsPerSecond } from '../load/render-load.ts';
import type { Load } from '../postgres/stores/read-loads.ts';
import { printable, renderTable } from './terminal.ts';

const formatWords: Readonly<Record<SourceFormat, string>> = {
  csv: 'CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  parquet: 'Parquet',
  avro: 'Avro',
  xlsx: 'Excel workbook',
};

/** Returns a line that says how the file was read, then a line for each thing that a person should know. */
export function describeReading({ readAs }: { readonly readAs: ReadAs | null }): string[] {
  if (readAs === null) return [];
  const { format, encoding, csv, sheet, member, notes } = readAs;
  const parts = [
    formatWords[format],
    member === null ? null : `${printable(member, 80)} of the archive`,
    sheet === null ? null : `sheet ${printable(sheet, 40)}`,
    encoding,
    ...(csv === null ? [] : describeCsv(csv)),
  ];
  return [parts.filter((part) => part !== null).join(', '), ...notes.map((each) => printable(each, 300))];
}

const delimiterWords: Readonly<Record<string, string>> = {
  ',': 'commas',
  ';': 'semicolons',
  '\t': 'tabs',
  '|': 'pipes',
  ' ': 'single blanks',
  blanks: 'any number of blanks',
};

function describeCsv(csv: CsvReadAs): string[] {
  const { delimiter, quote, comment, nulls, ragged, headerLine } = csv;
  const said = [`${delimiterWords[delimiter] ?? printable(delimiter, 20)} between cells`];
  if (quote !== '"') said.push(quote === '' ? 'no quotes' : `quotes ${quote}`);
  if (csv.escape === '\\') said.push('backslash before quotes');
  if (comment !== '') said.push(`no records in lines that start with ${printable(comment, 20)}`);
  if (nulls.length > 0) said.push(`empty where ${nulls.map((each) => printable(each, 40)).join(' or ')}`);
  if (ragged === 'pad') said.push('short records padded');
  return [...said, headerLine === null ? 'no header' : `header on line ${headerLine}`];
}

/** Returns the counts of a load as a table: one line, and one for each kind of record where there are several. */
export function summarise(load: Load): string[] {
  const { tally, tallyByKind, acceptedAt, endedAt } = load;
  const rate = rowsPerSecond(load, new Date());
  const seconds = ((endedAt?.getTime() ?? Date.now()) - acceptedAt.getTime()) / 1000;
  const all = { kind: 'all', tally, time: formatDuration(seconds), rate };
  const kinds = countedKinds.flatMap((kind) => {
    const counts = tallyByKind?.[kind];
    return counts === undefined || counts.read === 0 ? [] : [{ kind, tally: counts, time: '', rate: '' }];
  });
  const count = (name: keyof Tally) => (row: { readonly tally: Tally }) => row.tally[name];
  return renderTable(
    {
      ...(tallyByKind !== null && { kind: ({ kind }: { readonly kind: string }) => kind }),
      '>read': count('read'),
      '>inserted': count('inserted'),
      '>updated': count('updated'),
      '>unchanged': count('unchanged'),
      '>superseded': count('superseded'),
      '>rejected': count('rejected'),
      '>amended': count('amended'),
      '>time': ({ time }) => time,
      '>rows/s': ({ rate }) => rate,
    },
    [...kinds, all],
  );
}
