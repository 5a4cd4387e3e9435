import type { VNode } from 'preact';
import { advisedEncodings } from '../../../../domain/source.ts';
import { formatBytes, formatCount, plural, visibleText } from '../../lib/format.ts';
import type { Query } from '../../lib/use-query.ts';
import { FilterSelect, FilterText } from '../../ui/field.tsx';
import { Icon } from '../../ui/icons.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Facts, Section } from '../../ui/page.tsx';
import { Empty } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Value, VisibleText } from '../../ui/visible-text.tsx';
import {
  type InspectedColumn,
  type Inspection,
  otherOptions,
  type RefusedSample,
  type StoredRow,
} from './inspection.ts';

interface Props {
  readonly query: Query;
  readonly found: Inspection;
}

const formatNames: Readonly<Record<string, string>> = {
  csv: 'CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  xlsx: 'Excel',
  parquet: 'Parquet',
  avro: 'Avro',
};

/** How the server reads the file, and what the first records come to. What it got wrong is said here. */
export function Reading({ query, found }: Props): VNode {
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
              ['Format', readAs === null ? null : (formatNames[readAs.format] ?? readAs.format)],
              ['Size', formatBytes(found.file_size)],
              ['Looked at', looked],
              [
                'Header',
                readAs?.csv === undefined || readAs.csv === null ? null : headerText(readAs.csv.header_line),
              ],
              [
                'SHA-256',
                <span key="hash" class="mono break">
                  {found.sha256}
                </span>,
              ],
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
      <div class="step-foot">
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

/** Those that a message may advise, and others that files come in. */
const encodings = [
  'utf-8',
  ...advisedEncodings,
  ...['iso-8859-2', 'iso-8859-15', 'macintosh', 'utf-16le', 'utf-16be'],
];
const delimiters: readonly (readonly [string, string])[] = [
  ['comma', 'Comma ,'],
  ['semicolon', 'Semicolon ;'],
  ['tab', 'Tab ␉'],
  ['pipe', 'Pipe |'],
  ['space', 'Space'],
  ['blanks', 'Blanks, any number'],
];
const quotes: readonly (readonly [string, string])[] = [
  ['"', 'Double "'],
  ["'", "Single '"],
  ['none', 'None'],
];
const headers: readonly (readonly [string, string])[] = [
  ['none', 'None'],
  ...Array.from({ length: 5 }, (_, at) => [String(at + 1), `Record ${at + 1}`] as const),
];

const entityNames = { users: 'users', companies: 'companies', auto: 'each its own' } as const;
const entities: readonly (readonly [string, string])[] = [
  ['users', 'Users'],
  ['companies', 'Companies'],
  ['auto', 'Each its own'],
];

/** What was found out, and the choice to say otherwise. */
function Dialect({ query, found }: Props): VNode {
  const readAs = found.read_as;
  const csv = readAs?.csv ?? null;
  const isWorkbook = readAs?.format === 'xlsx' || query.get('sheet') !== '';
  const isText = (readAs === null || readAs.encoding !== null) && !isWorkbook;
  const isTable = csv !== null || readAs === null;
  const choose = (name: string) => (value: string) =>
    query.set({ [name]: value, map: undefined, plan: undefined }, { replace: true });
  const select = (
    name: string,
    label: string,
    seen: string | undefined,
    options: readonly (readonly [string, string])[],
  ) => (
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
    <div class="filters dialect">
      {isText
        ? select(
            'encoding',
            'Encoding',
            readAs?.encoding ?? undefined,
            encodings.map((each) => [each, each]),
          )
        : null}
      {isWorkbook ? (
        <FilterText
          label="Sheet"
          value={query.get('sheet')}
          placeholder={readAs?.sheet ?? 'name or number'}
          onChange={choose('sheet')}
        />
      ) : null}
      {isText && isTable
        ? select('delimiter', 'Delimiter', csv === null ? undefined : visibleText(csv.delimiter), delimiters)
        : null}
      {isText && isTable
        ? select('quote', 'Quote', csv === null ? undefined : csv.quote || 'none', quotes)
        : null}
      {isTable
        ? select('header', 'Header', csv === null ? undefined : headerText(csv.header_line), headers)
        : null}
      {select('entity', 'Records', found.entity === null ? undefined : entityNames[found.entity], entities)}
    </div>
  );
}

/** What was said that has no control here, as of a file that is loaded again; each can be taken back. */
function OtherOptions({ query }: { readonly query: Query }): VNode | null {
  const said = otherOptions(query);
  if (said.length === 0) return null;
  return (
    <ul class="said-options" aria-label="Other options">
      {said.map(([name, value]) => (
        <li key={name}>
          <span class="mono">
            {name} {visibleText(value)}
          </span>{' '}
          <a
            href={query.href({ [name]: undefined, plan: undefined })}
            aria-label={`Remove ${name}`}
            title="Remove"
          >
            <Icon name="close" size={10} />
          </a>
        </li>
      ))}
    </ul>
  );
}

const shownLines = 20;

/** The beginning as it is written, character by character. */
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

/** The first records as they would be stored, column by column. */
function Records({ found }: { readonly found: Inspection }): VNode {
  const columns: readonly Column<StoredRow>[] = [
    { id: '#row', title: 'Record', isNumber: true, cell: ({ row }) => formatCount(row) },
    ...found.columns.map(
      (column, at): Column<StoredRow> => ({
        id: `${at} ${column.name}`,
        title: visibleText(column.name),
        cell: (row) => <Value of={storedValue(row, column)} />,
      }),
    ),
  ];
  return (
    <Section title="As records" flush>
      {found.rows.length === 0 ? (
        <Empty title="No record can be shown">{found.problem?.message}</Empty>
      ) : (
        <Table
          caption="The first records"
          columns={columns}
          rows={found.rows}
          keyOf={({ row }) => String(row)}
        />
      )}
    </Section>
  );
}

function storedValue(row: StoredRow, { becomes }: InspectedColumn): unknown {
  if (becomes === null) return undefined;
  return becomes.startsWith('metadata.') ? row.metadata[becomes.slice('metadata.'.length)] : row[becomes];
}

const refusedColumns: readonly Column<RefusedSample>[] = [
  { id: 'line', title: 'Line', isNumber: true, cell: ({ line }) => formatCount(line) },
  { id: 'code', title: 'Reason', cell: ({ message }) => <VisibleText text={message} /> },
  {
    id: 'raw',
    title: 'As it is written',
    cell: ({ raw }) => (
      <span class="mono raw-cut">
        <VisibleText text={raw} />
      </span>
    ),
  },
];

function RefusedSamples({ found }: { readonly found: Inspection }): VNode | null {
  const { count, items } = found.rejects;
  if (count === 0) return null;
  return (
    <Section title={`${plural(count, 'record')} of ${formatCount(found.records)} would be refused`} flush>
      <Table
        caption="Records that would be refused"
        columns={refusedColumns}
        rows={items}
        keyOf={({ row }) => String(row)}
      />
    </Section>
  );
}
