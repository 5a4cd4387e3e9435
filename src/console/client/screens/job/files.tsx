import type { VNode } from 'preact';
import type { ExportJob } from '../../../../export/api.ts';
import { useApi } from '../../lib/data.ts';
import { formatBytes, formatCount } from '../../lib/format.ts';
import type { JobDetail } from '../../lib/jobs.ts';
import { CopyButton } from '../../ui/controls.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Loaded, Time } from '../../ui/page.tsx';

/** Shows the files of an export, with their hashes and links, which change with its state. */
export function ExportFiles({ job: { job_id, status } }: { readonly job: JobDetail }): VNode {
  const path = `/api/v1/analytics/exports/jobs/${encodeURIComponent(job_id)}`;
  return <Loaded of={useApi<ExportJob>(path, undefined, status)}>{(data) => <Files of={data} />}</Loaded>;
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
