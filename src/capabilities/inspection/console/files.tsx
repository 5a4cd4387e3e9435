import type { TargetedDragEvent, TargetedEvent, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Query } from '../../../console/client/lib/address.ts';
import { mayUse } from '../../../console/client/lib/api.ts';
import { formatBytes, formatShare } from '../../../console/client/lib/format.ts';
import { ActionButton, named } from '../../../console/client/ui/controls.tsx';
import { Icon } from '../../../console/client/ui/drawings.tsx';
import { type Column, List } from '../../../console/client/ui/list.tsx';
import { Badge, Problems, VisibleText } from '../../../console/client/ui/page.tsx';
import { noOptions } from './inspection.ts';
import { cancelSending, type Sending, sendFile, sendings } from './uploads.ts';

export function Files({ query }: { readonly query: Query }): VNode {
  const isHere = useRef(true);
  useEffect(
    () => () => {
      isHere.current = false;
    },
    [],
  );
  const send = async (files: readonly File[]): Promise<void> => {
    const sent = await Promise.all(files.map(sendFile));
    const [only] = sent;
    if (sent.length === 1 && only !== null && only !== undefined && isHere.current) {
      query.go({ ...noOptions, upload: only });
    }
  };
  const rows = sendings.value;
  return (
    <>
      <Drop onFiles={(files) => void send(files)} />
      {rows.length === 0 ? null : (
        <List
          title="Uploads"
          aside={<span class="hint">Kept for a day</span>}
          of={rows}
          columns={columnsOf(query)}
          keyOf={({ key }) => key}
        />
      )}
    </>
  );
}

function Drop({ onFiles }: { readonly onFiles: (files: readonly File[]) => void }): VNode {
  const [isOver, setOver] = useState(false);
  const take = (event: TargetedDragEvent<HTMLElement>, isDropped: boolean): void => {
    event.preventDefault();
    setOver(!isDropped);
    if (isDropped) onFiles([...(event.dataTransfer?.files ?? [])]);
  };
  const choose = ({ currentTarget: input }: TargetedEvent<HTMLInputElement>): void => {
    onFiles([...(input.files ?? [])]);
    input.value = '';
  };
  return (
    <section
      class="stack drop"
      aria-label="Files to load"
      data-over={isOver ? '' : undefined}
      onDragOver={(event) => take(event, false)}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => take(event, true)}
    >
      <span class="drop-icon">
        <Icon name="load" size={22} />
      </span>
      <p class="drop-title">Drop files here</p>
      <label class="button button-main">
        <input type="file" class="visually-hidden" multiple disabled={!mayUse('import')} onChange={choose} />
        Choose files
      </label>
      <p class="hint">
        CSV, TSV, NDJSON, JSON, Excel or Parquet, of any size, also gzip or in a ZIP archive. Nothing is
        loaded yet: you see first what is in them.
      </p>
    </section>
  );
}

function columnsOf(query: Query): readonly Column<Sending>[] {
  return [
    ['File', (row) => linkOf(row, query)],
    ['Size', ({ size }) => formatBytes(size), 'num minor'],
    ['State', (row) => (row.state === 'sent' ? <Badge tone="good">complete</Badge> : <Progress {...row} />)],
    [
      'Action',
      (row) => (
        <ActionButton look="quiet" scopes="import" act={async () => cancelSending(row)}>
          {named(row.state === 'sending' || row.state === 'waiting' ? 'Cancel' : 'Remove', row.name)}
        </ActionButton>
      ),
      'num',
    ],
  ];
}

function linkOf({ name, uploadId }: Sending, query: Query): VNode {
  const text = <VisibleText text={name} />;
  if (uploadId === '') return <span class="name">{text}</span>;
  return (
    <a class="name" href={query.href({ ...noOptions, upload: uploadId })}>
      {text}
    </a>
  );
}

function Progress({ state, error, name, sent, size }: Sending): VNode {
  if (state === 'failed') return <Problems error={error} />;
  return (
    <div class="two-lines">
      <progress max={size} value={sent} aria-label={`Sent of ${name}`} />
      <p class="hint num" role="status">
        {formatBytes(sent)} of {formatBytes(size)} · {formatShare(sent, size)}
        {state === 'waiting' ? (
          <span class="warn"> · no connection; the file is sent again by itself</span>
        ) : null}
      </p>
    </div>
  );
}
