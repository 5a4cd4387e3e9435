import type { VNode } from 'preact';
import type { Query } from '../../../console/client/lib/address.ts';
import { formatCount, plural, visibleText } from '../../../console/client/lib/format.ts';
import { FilterText, type Options, SelectField } from '../../../console/client/ui/controls.tsx';
import { type Column, List } from '../../../console/client/ui/list.tsx';
import { Fold, Notice, VisibleText } from '../../../console/client/ui/page.tsx';
import { groupedPresets, presetTitles, type SourceFormat } from '../../../domain/source.ts';
import type { Inspection } from '../api.ts';
import { givenOptions, type Inspected, isReadingChosen, listOf, otherOptions } from './inspection.ts';

const formatNames: Readonly<Record<SourceFormat, string>> = {
  csv: 'CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  xlsx: 'Excel',
  parquet: 'Parquet',
};

export function Reading({ query, inspection }: Inspected): VNode {
  const { read_as: readAs, problem, head } = inspection;
  const isOpen = readAs === null || isReadingChosen(query);
  return (
    <>
      {problem !== null && readAs === null ? (
        <Notice>{`${problem.message} ${problem.details}`}</Notice>
      ) : null}
      <Fold
        title={readAs === null ? 'How is it read?' : `Detected: ${wordsOf(readAs)}`}
        aside={<span>Change</span>}
        isOpen={isOpen}
      >
        <Dialect query={query} inspection={inspection} />
        <Meaning query={query} inspection={inspection} />
        <OtherOptions query={query} />
        {(readAs?.notes ?? []).map((text) => (
          <p key={text} class="hint">
            {text}
          </p>
        ))}
        {head === '' ? null : <Head text={head} />}
      </Fold>
    </>
  );
}

function wordsOf({ format, encoding, csv, sheet }: NonNullable<Inspection['read_as']>): string {
  const parts = [formatNames[format], encoding?.toUpperCase(), sheet && visibleText(sheet)];
  const header = csv === null ? null : `header ${headerText(csv.header_line)}`;
  return [...parts, csv && delimiterText(csv.delimiter), header].filter(Boolean).join(', ');
}

function OtherOptions({ query }: { readonly query: Query }): VNode | null {
  const options = otherOptions(query);
  if (options.length === 0) return null;
  const none = Object.fromEntries(options.map(([name]) => [name, undefined]));
  return (
    <p class="row">
      <span>Also given:</span>{' '}
      <code>{options.map(([name, value]) => `${name} ${visibleText(value)}`).join(', ')}</code>
      <a href={query.href(none)}>Remove</a>
    </p>
  );
}

const shownLines = 20;

function Head({ text }: { readonly text: string }): VNode {
  const lines = text.split('\n').slice(0, shownLines);
  return (
    <>
      <h3>Raw text</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard too */}
      <pre class="head-text" tabIndex={0}>
        {lines.map((line, at) => (
          <span key={at} class="head-line">
            <VisibleText text={line} />
            {'\n'}
          </span>
        ))}
      </pre>
    </>
  );
}

const refusedColumns: readonly Column<Inspection['rejects']['items'][number]>[] = [
  ['Line', ({ line }) => formatCount(line), 'num'],
  ['Reason', ({ message }) => <VisibleText text={message} />],
  [
    'Raw text',
    ({ raw }) => (
      <span class="mono raw-cut">
        <VisibleText text={raw} />
      </span>
    ),
  ],
];

export function RefusedSamples({ inspection }: { readonly inspection: Inspection }): VNode | null {
  const { count, items } = inspection.rejects;
  if (count === 0) return null;
  return (
    <List
      title={`${plural(count, 'record')} of ${formatCount(inspection.records)} would be refused`}
      of={items}
      columns={refusedColumns}
    />
  );
}

function headerText(line: number | null): string {
  return line === null ? 'none; columns are numbered' : `line ${formatCount(line)}`;
}

const encodings: Options = [
  ...['utf-8', 'utf-16le', 'utf-16be', 'windows-1250', 'windows-1251', 'windows-1252', 'windows-1253'],
  ...['windows-1254', 'windows-1255', 'windows-1256', 'windows-1257', 'windows-874', 'iso-8859-2'],
  ...['iso-8859-5', 'iso-8859-15', 'koi8-r', 'ibm866', 'macintosh', 'shift_jis', 'euc-jp', 'euc-kr'],
  ...['gb18030', 'big5'],
].map((name) => [name, name]);
const delimiters: Options = [
  ['comma', 'Comma ,'],
  ['semicolon', 'Semicolon ;'],
  ['tab', 'Tab ␉'],
  ['pipe', 'Pipe |'],
  ['space', 'Space'],
  ['blanks', 'Spaces, any number'],
];
function delimiterText(delimiter: string): string {
  const name = delimiters.find(([, text]) => text.endsWith(` ${delimiter}`))?.[0];
  return name ?? visibleText(delimiter);
}
const quotes: Options = [
  ['"', 'Double "'],
  ["'", "Single '"],
  ['none', 'None'],
];
const headers: Options = [
  ['none', 'None'],
  ...Array.from({ length: 5 }, (_, at) => [String(at + 1), `Record ${at + 1}`] as const),
];

const entityNames = { users: 'users', companies: 'companies', auto: 'mixed' } as const;
const entities: Options = [
  ['users', 'Users'],
  ['companies', 'Companies'],
  ['auto', 'Mixed'],
];

const products = Object.entries(presetTitles);

/** An option may change the columns, so a new value resets the choices made for columns. */
function controlsOf(query: Query) {
  const choose = (name: string) => (value: string) =>
    query.set({ [name]: value, map: undefined, types: undefined });
  const choice = (name: string, label: string, none: string, options: Options) => (
    <SelectField
      label={label}
      value={query.get(name)}
      options={[['', none], ...options]}
      onChange={choose(name)}
    />
  );
  const detected = (name: string, label: string, seen: string | null | undefined, options: Options) =>
    choice(
      name,
      label,
      query.get(name) === '' && seen != null ? `Detected: ${seen}` : 'As detected',
      options,
    );
  return { choose, choice, detected };
}

function Dialect({ query, inspection: { read_as: readAs } }: Inspected): VNode {
  const { choose, choice, detected } = controlsOf(query);
  const csv = readAs?.csv ?? null;
  const isWorkbook = readAs?.format === 'xlsx' || query.get('sheet') !== '';
  const isText = (readAs === null || readAs.encoding !== null) && !isWorkbook;
  const isTable = csv !== null || readAs === null;
  const sheets = (readAs?.sheets ?? []).map((each) => [each, each] as const);
  return (
    <div class="row filters">
      {isText && detected('encoding', 'Encoding', readAs?.encoding, encodings)}
      {isWorkbook && detected('sheet', 'Sheet', readAs?.sheet, sheets)}
      {isText && isTable && (
        <>
          {detected('delimiter', 'Delimiter', csv && visibleText(csv.delimiter), delimiters)}
          {detected('quote', 'Quote', csv && (csv.quote || 'none'), quotes)}
        </>
      )}
      {isTable && (
        <>
          {detected('header', 'Header', csv && headerText(csv.header_line), headers)}
          {choice('ragged', 'Short records', 'Are refused', [['pad', 'Are padded with empty cells']])}
          <FilterText
            label="Empty values"
            value={listOf(query, 'null').join(', ')}
            placeholder="NULL, N/A"
            onChange={(text) => choose('null')(nullsIn(text))}
          />
        </>
      )}
    </div>
  );
}

function Meaning({ query, inspection: { preset, entity } }: Inspected): VNode {
  const { choose, choice, detected } = controlsOf(query);
  return (
    <div class="row filters">
      {detected('entity', 'Records', entity && entityNames[entity], entities)}
      {detected('preset', 'Export of', preset && presetTitles[preset], products)}
      {groupedPresets.has(preset) && (
        <FilterText
          label="Groups that are companies"
          value={query.get('company_from')}
          placeholder="company, organization, account"
          onChange={choose('company_from')}
        />
      )}
      {!givenOptions.some(({ decides }) => decides(query)) &&
        choice('existing', 'Values that profiles have', 'Are replaced', [['keep', 'Stay']])}
      {givenOptions.map(({ Control }, at) => (
        <Control key={at} query={query} />
      ))}
    </div>
  );
}

function nullsIn(text: string): string {
  const nulls = text.split(',').flatMap((each) => each.trim() || []);
  return nulls.length === 0 ? '' : JSON.stringify(nulls);
}
