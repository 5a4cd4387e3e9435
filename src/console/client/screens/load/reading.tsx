import type { VNode } from 'preact';
import type { Inspection } from '../../../../api/upload.ts';
import type { SourceFormat } from '../../../../domain/source.ts';
import type { Query } from '../../lib/api.ts';
import { formatBytes, formatCount, plural, visibleText } from '../../lib/format.ts';
import type { InspectedColumn } from '../../lib/jobs.ts';
import { Empty, Facts, Notice, Section, Value, VisibleText } from '../../ui/page.tsx';
import { type Column, TableSection } from '../../ui/table.tsx';
import { type Inspected, otherOptions } from './inspection.ts';
import { Dialect, headerText, Meaning } from './options.tsx';

type StoredRow = Inspection['rows'][number] & Readonly<Record<string, unknown>>;

const formatNames: Readonly<Record<SourceFormat, string>> = {
  csv: 'CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  xlsx: 'Excel',
  parquet: 'Parquet',
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
          <Meaning query={query} found={found} />
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
              ...(readAs?.notes ?? []).map((text, at) => [at === 0 ? 'Notes' : '', text] as const),
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
          Continue to columns
        </a>
      </div>
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
    <Section title="Raw text" aside={<span class="hint">Control characters are shown by name</span>} flush>
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
        <bdi key={column.name}>{visibleText(column.name)}</bdi>,
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
    'Raw text',
    ({ raw }) => (
      <span class="mono raw-cut">
        <VisibleText text={raw} />
      </span>
    ),
  ],
];

/** Lists the first records that would be refused, with the reasons. */
export function RefusedSamples({ found }: { readonly found: Inspection }): VNode | null {
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
