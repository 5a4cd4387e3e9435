import type { VNode } from 'preact';
import type { Inspection } from '../../../../api/upload.ts';
import { groupedPresets, presetTitles } from '../../../../domain/load.ts';
import type { SourceFormat } from '../../../../domain/source.ts';
import type { Query } from '../../lib/api.ts';
import { formatBytes, formatCount, plural, visibleText } from '../../lib/format.ts';
import type { InspectedColumn } from '../../lib/jobs.ts';
import { FilterSelect, FilterText, type Options } from '../../ui/controls.tsx';
import { Empty, Facts, Notice, Section, Value, VisibleText } from '../../ui/page.tsx';
import { type Column, TableSection } from '../../ui/table.tsx';
import { type Inspected, otherOptions } from './inspection.ts';

type StoredRow = Inspection['rows'][number] & Readonly<Record<string, unknown>>;

const formatNames: Readonly<Record<SourceFormat, string>> = {
  csv: 'CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  xlsx: 'Excel',
  parquet: 'Parquet',
  avro: 'Avro',
};

/** Shows how the server reads the file, and its first records. What it got wrong is corrected here. */
export function Reading({ query, found }: Inspected): VNode {
  const { read_as: readAs, records, whole_file: isWhole } = found;
  const looked = isWhole ? `all ${plural(records, 'record')}` : `the first ${plural(records, 'record')}`;
  return (
    <>
      <div class="columns">
        <Section title="Read as">
          <Dialect query={query} found={found} />
          <OtherOptions query={query} />
        </Section>
        <Section title="The file">
          <Facts
            of={[
              ['Format', readAs === null ? null : formatNames[readAs.format]],
              ['Size', formatBytes(found.file_size)],
              ['Looked at', looked],
              ['Header', readAs?.csv == null ? null : headerText(readAs.csv.header_line)],
              ['SHA-256', <code key="hash">{found.sha256}</code>],
              ...(readAs?.notes ?? []).map((text, at) => [at === 0 ? 'Noticed' : '', text] as const),
            ]}
          />
        </Section>
      </div>
      {found.problem !== null && readAs === null ? (
        <Notice>{`${found.problem.message} ${found.problem.details}`}</Notice>
      ) : null}
      {found.head === '' ? null : <Head text={found.head} />}
      <Records found={found} />
      <RefusedSamples found={found} />
      <div class="row">
        <a class="button button-main" href={query.href({ step: 'columns' })}>
          On to the columns
        </a>
      </div>
    </>
  );
}

function headerText(line: number | null): string {
  return line === null ? 'none; columns are numbered' : `line ${formatCount(line)}`;
}

/** The encodings that files come in. */
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
  ['blanks', 'Blanks, any number'],
];
const quotes: Options = [
  ['"', 'Double "'],
  ["'", "Single '"],
  ['none', 'None'],
];
const headers: Options = [
  ['none', 'None'],
  ...Array.from({ length: 5 }, (_, at) => [String(at + 1), `Record ${at + 1}`] as const),
];

const entityNames = { users: 'users', companies: 'companies', auto: 'each its own' } as const;
const entities: Options = [
  ['users', 'Users'],
  ['companies', 'Companies'],
  ['auto', 'Each its own'],
];

const products = Object.entries(presetTitles);

/** Shows what was detected, each with the choice to say otherwise. */
function Dialect({ query, found }: Inspected): VNode {
  const readAs = found.read_as;
  const csv = readAs?.csv ?? null;
  const isWorkbook = readAs?.format === 'xlsx' || query.get('sheet') !== '';
  const isText = (readAs === null || readAs.encoding !== null) && !isWorkbook;
  const isTable = csv !== null || readAs === null;
  const choose = (name: string) => (value: string) =>
    query.set({ [name]: value, map: undefined, plan: undefined }, { replace: true });
  const select = (name: string, label: string, seen: string | undefined, options: Options) => (
    <FilterSelect
      label={label}
      value={query.get(name)}
      options={[
        ['', query.get(name) === '' && seen !== undefined ? `Detected: ${seen}` : 'As detected'],
        ...options,
      ]}
      onChange={choose(name)}
    />
  );
  return (
    <div class="row filters">
      {isText && select('encoding', 'Encoding', readAs?.encoding ?? undefined, encodings)}
      {isWorkbook &&
        select(
          'sheet',
          'Sheet',
          readAs?.sheet ?? undefined,
          (readAs?.sheets ?? []).map((each) => [each, each]),
        )}
      {isText &&
        isTable &&
        select('delimiter', 'Delimiter', csv ? visibleText(csv.delimiter) : undefined, delimiters)}
      {isText && isTable && select('quote', 'Quote', csv ? csv.quote || 'none' : undefined, quotes)}
      {isTable && select('header', 'Header', csv ? headerText(csv.header_line) : undefined, headers)}
      <FilterSelect
        label="Removals"
        value={query.get('removals')}
        options={[
          ['', 'None'],
          ['true', 'Where removed is true'],
        ]}
        onChange={choose('removals')}
      />
      <Mirrored query={query} />
      {select(
        'preset',
        'Export of',
        found.preset === null ? undefined : presetTitles[found.preset],
        products,
      )}
      {found.preset !== null && groupedPresets.has(found.preset) && (
        <FilterText
          label="Groups that are companies"
          value={query.get('company_from')}
          placeholder="company, organization, account"
          onChange={choose('company_from')}
        />
      )}
      {select('entity', 'Records', found.entity === null ? undefined : entityNames[found.entity], entities)}
    </div>
  );
}

/** Asks what becomes of the profiles that the file does not hold. */
function Mirrored({ query }: { readonly query: Query }): VNode {
  const mirror = query.get('mirror');
  const flag = mirror.startsWith('flag:') ? mirror : 'flag:missing';
  const set = (change: Readonly<Record<string, string | undefined>>) =>
    query.set({ ...change, plan: undefined }, { replace: true });
  const none = { max_removed: undefined, mirror_segment: undefined, mirror_despite_rejects: undefined };
  return (
    <>
      <FilterSelect
        label="Profiles not in the file"
        value={mirror}
        options={[
          ['', 'Stay'],
          ['remove', 'Are removed'],
          [flag, `Are flagged as ${visibleText(flag.slice('flag:'.length))}`],
        ]}
        onChange={(value) => set({ mirror: value, ...(value === '' && none) })}
      />
      {mirror !== '' && (
        <>
          <FilterText
            label="At most"
            value={query.get('max_removed')}
            placeholder="5%"
            onChange={(value) => set({ max_removed: value })}
          />
          <FilterText
            label="Of the segment"
            value={query.get('mirror_segment')}
            placeholder="all"
            onChange={(value) => set({ mirror_segment: value })}
          />
        </>
      )}
    </>
  );
}

/** Lists given options that have no control here, such as those of a file that is loaded again. */
function OtherOptions({ query }: { readonly query: Query }): VNode | null {
  const said = otherOptions(query);
  if (said.length === 0) return null;
  const none = Object.fromEntries([...said, ['plan']].map(([name]) => [name, undefined]));
  return (
    <p class="row">
      <span>Also given:</span>{' '}
      <code>{said.map(([name, value]) => `${name} ${visibleText(value)}`).join(', ')}</code>
      <a href={query.href(none)}>Remove</a>
    </p>
  );
}

const shownLines = 20;

/** Shows the beginning of the file, character by character. */
function Head({ text }: { readonly text: string }): VNode {
  const lines = text.split('\n').slice(0, shownLines);
  return (
    <Section
      title="As it is written"
      aside={<span class="hint">Control characters are shown by name</span>}
      flush
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard too */}
      <pre class="head-text" tabIndex={0}>
        {lines.map((line, at) => (
          <span key={at} class="head-line">
            <VisibleText text={line} />
            {'\n'}
          </span>
        ))}
      </pre>
    </Section>
  );
}

/** Shows the first records as they would be stored, column by column. */
function Records({ found }: { readonly found: Inspection }): VNode {
  const columns: readonly Column<StoredRow>[] = [
    ['Record', ({ row }) => formatCount(row), 'num'],
    ...found.columns.map(
      (column): Column<StoredRow> => [
        visibleText(column.name),
        (row) => <Value of={storedValue(row, column)} />,
      ],
    ),
  ];
  return (
    <TableSection
      title="As records"
      of={found.rows}
      caption="The first records"
      columns={columns}
      keyOf={({ row }) => String(row)}
      empty={<Empty title="No record can be shown">{found.problem?.message}</Empty>}
    />
  );
}

function storedValue(row: StoredRow, { becomes }: InspectedColumn): unknown {
  if (becomes === null) return undefined;
  return becomes.startsWith('metadata.') ? row.metadata[becomes.slice('metadata.'.length)] : row[becomes];
}

const refusedColumns: readonly Column<Inspection['rejects']['items'][number]>[] = [
  ['Line', ({ line }) => formatCount(line), 'num'],
  ['Reason', ({ message }) => <VisibleText text={message} />],
  [
    'As it is written',
    ({ raw }) => (
      <span class="mono raw-cut">
        <VisibleText text={raw} />
      </span>
    ),
  ],
];

function RefusedSamples({ found }: { readonly found: Inspection }): VNode | null {
  const { count, items } = found.rejects;
  if (count === 0) return null;
  return (
    <TableSection
      title={`${plural(count, 'record')} of ${formatCount(found.records)} would be refused`}
      of={items}
      caption="Records that would be refused"
      columns={refusedColumns}
      keyOf={({ row }) => String(row)}
    />
  );
}
