import type { VNode } from 'preact';
import type { Query } from '../../../console/client/lib/address.ts';
import { formatCount, plural, visibleText } from '../../../console/client/lib/format.ts';
import { type Column, List } from '../../../console/client/ui/list.tsx';
import { Fold, Notice, VisibleText } from '../../../console/client/ui/page.tsx';
import type { SourceFormat } from '../../../domain/source.ts';
import type { Inspection } from '../api.ts';
import { type Inspected, isReadingChosen, otherOptions } from './inspection.ts';
import { Dialect, delimiterText, headerText, Meaning } from './options.tsx';

const formatNames: Readonly<Record<SourceFormat, string>> = {
  csv: 'CSV',
  ndjson: 'NDJSON',
  json: 'JSON',
  xlsx: 'Excel',
  parquet: 'Parquet',
};

/** Summarises how the server reads the file. The summary unfolds into controls that change it. */
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
