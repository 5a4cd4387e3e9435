import type { TargetedDragEvent, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Upload } from '../../../../api/upload.ts';
import { type Query, useApi } from '../../lib/api.ts';
import { formatBytes, formatShare } from '../../lib/format.ts';
import {
  cancelSending,
  isBegunHere,
  removeUpload,
  type Sending,
  sendFile,
  sendings,
} from '../../lib/uploads.ts';
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
  const rows = rowsOf(sendings.value, kept.data ?? []);
  return (
    <>
      <Drop onFiles={(files) => void send(files)} />
      <Problems error={kept.error} onRetry={kept.reload} />
      {rows.length === 0 ? null : (
        <TableSection
          title="Uploads"
          aside={<span class="hint">Kept for a day after the last byte</span>}
          of={rows}
          caption="Uploads, latest first"
          columns={columnsOf(query, kept.reload)}
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
        CSV, TSV, NDJSON, JSON, Excel, Parquet or Avro, of any size, also gzip or in a ZIP archive. Nothing is
        loaded yet: you see first what is in them.
      </p>
    </section>
  );
}

/** An upload: on its way from this page, or as the server has it. */
interface Row {
  readonly key: string;
  readonly name: string;
  readonly size: number;
  readonly received: number;
  readonly uploadId: string | null;
  readonly createdAt: string | null;
  readonly sending: Sending | null;
}

function rowsOf(underWay: readonly Sending[], kept: readonly Upload[]): Row[] {
  const active = underWay.filter(
    ({ state, uploadId }) => state !== 'done' || !kept.some((each) => each.upload_id === uploadId),
  );
  const others = kept.filter(({ upload_id }) => !active.some(({ uploadId }) => uploadId === upload_id));
  return [
    ...active.map((sending): Row => {
      const { key, name, size, sent, uploadId } = sending;
      return { key: uploadId ?? key, name, size, received: sent, uploadId, createdAt: null, sending };
    }),
    ...others.map(
      ({ upload_id, filename, file_size, received_bytes, created_at }): Row => ({
        ...{ key: upload_id, uploadId: upload_id, name: filename ?? 'without a name', size: file_size },
        ...{ received: received_bytes, createdAt: created_at, sending: null },
      }),
    ),
  ];
}

function columnsOf(query: Query, reload: () => void): readonly Column<Row>[] {
  const remove = async ({ sending, uploadId }: Row): Promise<void> => {
    if (sending !== null) await cancelSending(sending);
    else if (uploadId !== null) await removeUpload(uploadId);
    reload();
  };
  const isUnderWay = ({ sending }: Row): boolean =>
    sending?.state === 'sending' || sending?.state === 'waiting';
  return [
    ['File', (row) => nameOf(row, query)],
    ['Size', ({ size }) => formatBytes(size), 'num minor'],
    ['State', stateOf],
    ['Started', ({ createdAt }) => <Time at={createdAt} />, 'num minor'],
    [
      'Action',
      (row) => (
        <ActionButton look="quiet" needs="import" act={() => remove(row)}>
          {named(isUnderWay(row) ? 'Cancel' : 'Remove', row.name)}
        </ActionButton>
      ),
      'num',
    ],
  ];
}

function nameOf({ name, uploadId, received, size }: Row, query: Query): VNode {
  const text = <VisibleText text={name} />;
  if (uploadId === null || received < size) return <span class="name">{text}</span>;
  return (
    <a class="name" href={query.href({ ...noOptions, upload: uploadId, step: 'reading' })}>
      {text}
    </a>
  );
}

function stateOf({ sending, received, size, uploadId, name }: Row): VNode {
  if (sending?.state === 'failed') return <Problems error={sending.error} />;
  if (received >= size) return <Badge tone="good">complete</Badge>;
  const advice =
    uploadId !== null && isBegunHere(uploadId)
      ? ' received. Choose the same file again to continue.'
      : ' received. Another browser is sending it.';
  return (
    <div class="two-lines">
      <progress max={size} value={received} aria-label={`Sent of ${name}`} />
      <p class="hint num" role="status">
        {formatBytes(received)} of {formatBytes(size)}
        {sending === null ? advice : ` · ${formatShare(received, size)}`}
        {sending?.state === 'waiting' ? (
          <span class="warn"> · no connection; it continues by itself</span>
        ) : null}
      </p>
    </div>
  );
}
