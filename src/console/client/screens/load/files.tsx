import type { TargetedDragEvent, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Upload } from '../../../../api/upload.ts';
import { type Query, useApi } from '../../lib/api.ts';
import { formatBytes, formatShare } from '../../lib/format.ts';
import { cancelSending, removeUpload, type Sending, sendFile, sendings } from '../../lib/uploads.ts';
import { ActionButton, FileButton, named } from '../../ui/controls.tsx';
import { Icon } from '../../ui/drawings.tsx';
import { Badge, Problems, Time, VisibleText } from '../../ui/page.tsx';
import { type Column, TableSection } from '../../ui/table.tsx';
import { noOptions } from './inspection.ts';

const pollMs = 5_000;

/** Takes files that are dropped or chosen; below are all uploads that the server keeps, whoever sent them. */
export function Files({ query }: { readonly query: Query }): VNode {
  const isHere = useRef(true);
  const latest = useRef(query);
  latest.current = query;
  useEffect(
    () => () => {
      isHere.current = false;
    },
    [],
  );
  const kept = useApi<readonly Upload[]>('/v1/uploads', pollMs);
  const send = async (files: readonly File[]): Promise<void> => {
    const sent = await Promise.all(files.map(sendFile));
    kept.reload();
    const [only] = sent;
    // A single file is shown at once.
    if (sent.length === 1 && only !== null && only !== undefined && isHere.current) {
      latest.current.go({ ...noOptions, upload: only, step: 'reading' });
    }
  };
  const rows: readonly Row[] = [...sendings.value, ...(kept.data ?? [])];
  return (
    <>
      <Drop onFiles={(files) => void send(files)} />
      <Problems error={kept.error} onRetry={kept.reload} />
      {rows.length === 0 ? null : (
        <TableSection
          title="Uploads"
          aside={<span class="hint">Kept for a day</span>}
          of={rows}
          caption="Uploads, latest first"
          columns={columnsOf(query, kept.reload)}
          keyOf={(row) => ('key' in row ? row.key : row.upload_id)}
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
      <FileButton look="main" isMany onFiles={onFiles}>
        Choose files
      </FileButton>
      <p class="hint">
        CSV, TSV, NDJSON, JSON, Excel or Parquet, of any size, also gzip or in a ZIP archive. Nothing is
        loaded yet: you see first what is in them.
      </p>
    </section>
  );
}

type Row = Sending | Upload;

const nameOf = (row: Row): string => ('key' in row ? row.name : (row.filename ?? 'without a name'));

function columnsOf(query: Query, reload: () => void): readonly Column<Row>[] {
  const remove = async (row: Row): Promise<void> => {
    if ('key' in row) cancelSending(row);
    else await removeUpload(row.upload_id);
    reload();
  };
  return [
    ['File', (row) => linkOf(row, query)],
    ['Size', (row) => formatBytes('key' in row ? row.size : row.file_size), 'num minor'],
    ['State', (row) => ('key' in row ? <Progress {...row} /> : <Badge tone="good">complete</Badge>)],
    ['Received', (row) => <Time at={'key' in row ? null : row.created_at} />, 'num minor'],
    [
      'Action',
      (row) => (
        <ActionButton look="quiet" needs="import" act={() => remove(row)}>
          {named('key' in row && row.state !== 'failed' ? 'Cancel' : 'Remove', nameOf(row))}
        </ActionButton>
      ),
      'num',
    ],
  ];
}

function linkOf(row: Row, query: Query): VNode {
  const text = <VisibleText text={nameOf(row)} />;
  if ('key' in row) return <span class="name">{text}</span>;
  return (
    <a class="name" href={query.href({ ...noOptions, upload: row.upload_id, step: 'reading' })}>
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
