import type { VNode } from 'preact';
import type { ExportJob } from '../../../../export/api.ts';
import { useApi } from '../../lib/data.ts';
import { formatBytes, formatCount } from '../../lib/format.ts';
import { CopyButton } from '../../ui/controls.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Loaded, Time } from '../../ui/page.tsx';

interface FilesProps {
  readonly jobId: string;
  /** The links change with it. */
  readonly state: string;
}

/** Shows the files of an export, with their hashes and links. */
export function ExportFiles({ jobId, state }: FilesProps): VNode {
  const path = `/api/v1/analytics/exports/jobs/${encodeURIComponent(jobId)}`;
  return <Loaded of={useApi<ExportJob>(path, undefined, state)}>{(data) => <Files of={data} />}</Loaded>;
}

function Files({ of }: { readonly of: ExportJob }): VNode {
  const files = [...of.presigned_urls, ...(of.manifest === null ? [] : [of.manifest])];
  const isRunning = of.end_time === null;
  const none = of.files_expired ? 'The files have expired' : isRunning ? 'Not written yet' : 'There are none';
  return (
    <List title="Files" of={files} columns={fileColumns} empty={none}>
      <p class="line hint">
        Snapshot: <Time at={of.snapshot_time} />. Cursor for what changes later:{' '}
        <span class="mono break">{of.cursor ?? '–'}</span>
      </p>
    </List>
  );
}

const fileColumns: readonly Column<NonNullable<ExportJob['manifest']> & { readonly rows?: number }>[] = [
  [
    'File',
    ({ filename, url }) => (
      <a href={url} download={filename}>
        {filename}
      </a>
    ),
  ],
  ['Rows', ({ rows }) => (rows === undefined ? '–' : formatCount(rows)), 'num'],
  ['Size', ({ bytes }) => formatBytes(bytes), 'num'],
  [
    'SHA-256',
    ({ sha256 }) => (
      <span class="row">
        <code title={sha256}>{sha256.slice(0, 16)}…</code>
        <CopyButton text={sha256} label="Copy hash" />
      </span>
    ),
    'minor',
  ],
];
