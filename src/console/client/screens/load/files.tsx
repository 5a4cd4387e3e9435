import type { TargetedDragEvent, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Upload } from '../../../../api/upload.ts';
import type { Query } from '../../lib/address.ts';
import { api, mayUse } from '../../lib/api.ts';
import { formatBytes, formatShare } from '../../lib/format.ts';
import {
  cancelSending,
  isBegunHere,
  removeUpload,
  type Sending,
  sendFile,
  sendings,
} from '../../lib/uploads.ts';
import { useData } from '../../lib/use-data.ts';
import { Badge } from '../../ui/badge.tsx';
import { ActionButton } from '../../ui/button.tsx';
import { Icon } from '../../ui/icons.tsx';
import { Section } from '../../ui/page.tsx';
import { Problems } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time, VisibleText } from '../../ui/text.tsx';
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
  const kept = useData('/v1/uploads', (signal) => api<readonly Upload[]>('/v1/uploads', { signal }), {
    everyMs: pollMs,
  });
  const send = async (files: readonly File[]): Promise<void> => {
    const sent = await Promise.all(files.map(sendFile));
    kept.reload();
    const [only] = sent;
    // A single file is shown at once.
    if (sent.length === 1 && only !== null && only !== undefined && isHere.current) {
      latest.current.set({ ...noOptions, upload: only, step: 'reading' });
    }
  };
  const rows = rowsOf(sendings.value, kept.data ?? []);
  return (
    <>
      <Drop onFiles={(files) => void send(files)} />
      <Problems error={kept.error} onRetry={kept.reload} />
      {rows.length === 0 ? null : (
        <Section title="Uploads" aside={<span class="hint">Kept for a day after the last byte</span>} flush>
          <Table
            caption="Uploads, latest first"
            columns={columnsOf(query, kept.reload)}
            rows={rows}
            keyOf={({ key }) => key}
          />
        </Section>
      )}
    </>
  );
}

function Drop({ onFiles }: { readonly onFiles: (files: readonly File[]) => void }): VNode {
  const [isOver, setOver] = useState(false);
  const over = (event: TargetedDragEvent<HTMLElement>): void => {
    event.preventDefault();
    setOver(true);
  };
  const drop = (event: TargetedDragEvent<HTMLElement>): void => {
    event.preventDefault();
    setOver(false);
    onFiles([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <section
      class="drop"
      aria-label="Files to load"
      data-over={isOver ? '' : undefined}
      onDragOver={over}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <span class="drop-icon">
        <Icon name="load" size={22} />
      </span>
      <p class="drop-title">Drop files here</p>
      <label class="button button-main drop-choose">
        <input
          type="file"
          class="visually-hidden"
          multiple
          disabled={!mayUse('import')}
          onChange={(event) => {
            onFiles([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = '';
          }}
        />
        Choose files
      </label>
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
  const taken = new Set(active.map(({ uploadId }) => uploadId));
  return [
    ...active.map((sending): Row => {
      const { key, name, size, sent, uploadId } = sending;
      return { key: uploadId ?? key, name, size, received: sent, uploadId, createdAt: null, sending };
    }),
    ...kept
      .filter(({ upload_id }) => !taken.has(upload_id))
      .map(
        ({ upload_id, filename, file_size, received_bytes, created_at }): Row => ({
          key: upload_id,
          name: filename ?? 'without a name',
          size: file_size,
          received: received_bytes,
          uploadId: upload_id,
          createdAt: created_at,
          sending: null,
        }),
      ),
  ];
}

function columnsOf(query: Query, reload: () => void): readonly Column<Row>[] {
  return [
    { title: 'File', cell: (row) => <FileName row={row} query={query} /> },
    { title: 'Size', is: 'num minor', cell: ({ size }) => formatBytes(size) },
    { title: 'State', cell: (row) => <State row={row} /> },
    { title: 'Started', is: 'num minor', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { title: 'Action', is: 'num', cell: (row) => <Remove row={row} onRemoved={reload} /> },
  ];
}

function FileName({ row, query }: { readonly row: Row; readonly query: Query }): VNode {
  const name = <VisibleText text={row.name} />;
  if (row.uploadId === null || row.received < row.size) return <span class="name">{name}</span>;
  return (
    <a class="name" href={query.href({ ...noOptions, upload: row.uploadId, step: 'reading' })}>
      {name}
    </a>
  );
}

function State({ row }: { readonly row: Row }): VNode {
  const { sending, received, size, uploadId } = row;
  if (sending?.state === 'failed') return <Problems error={sending.error} />;
  if (received >= size) return <Badge tone="good">complete</Badge>;
  const amount = `${formatBytes(received)} of ${formatBytes(size)}`;
  return (
    <div class="upload-state">
      <progress max={size} value={received} aria-label={`Sent of ${row.name}`} />
      {sending === null ? (
        <p class="hint">
          {amount} received.{' '}
          {uploadId !== null && isBegunHere(uploadId)
            ? 'Choose the same file again to continue.'
            : 'Another browser is sending it.'}
        </p>
      ) : (
        <p class="hint num" role="status">
          {amount} · {formatShare(received, size)}
          {sending.state === 'waiting' ? (
            <span class="warn"> · no connection; it continues by itself</span>
          ) : null}
        </p>
      )}
    </div>
  );
}

function Remove({ row, onRemoved }: { readonly row: Row; readonly onRemoved: () => void }): VNode {
  const { uploadId, sending, name } = row;
  const remove = async (): Promise<void> => {
    if (sending !== null) await cancelSending(sending);
    else if (uploadId !== null) await removeUpload(uploadId);
    onRemoved();
  };
  const isUnderWay = sending?.state === 'sending' || sending?.state === 'waiting';
  return (
    <ActionButton look="quiet" needs="import" act={remove}>
      {isUnderWay ? 'Cancel' : 'Remove'}
      <span class="visually-hidden"> {name}</span>
    </ActionButton>
  );
}
