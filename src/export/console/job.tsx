import type { VNode } from 'preact';
import { useApi } from '../../console/client/lib/data.ts';
import { formatBytes, formatCount } from '../../console/client/lib/format.ts';
import { useStart } from '../../console/client/lib/jobs.ts';
import { ActionButton, type ButtonProps, CopyButton } from '../../console/client/ui/controls.tsx';
import { type Column, List } from '../../console/client/ui/list.tsx';
import { type Fact, Loaded, Time } from '../../console/client/ui/page.tsx';
import type { ExportJob, ExportJobDetail } from '../api.ts';
import { exportOf, exportsPath } from './request.tsx';

declare module '../../console/client/lib/jobs.ts' {
  interface JobDocuments {
    readonly export: ExportJobDetail;
  }
}

type AgainProps = Pick<ButtonProps, 'look'> & { readonly job: ExportJobDetail };

/**
 * A button that repeats an export. It is not shown if lists of the request were cut, because the
 * new export would be different.
 */
export function ExportAgain({ job, look }: AgainProps): VNode | null {
  const start = useStart();
  if (job.options_cut) return null;
  return (
    <ActionButton look={look} scopes="export" act={() => start(exportsPath, exportOf(job))}>
      Export again
    </ActionButton>
  );
}

export function exportFacts({ completed_rows: rows, warnings }: ExportJobDetail): readonly Fact[] {
  return [
    ['Rows', formatCount(rows)],
    ...warnings.map(({ message, details }): Fact => ['Warning', `${message} (${details})`]),
  ];
}

export function ExportFiles({ job: { job_id, status } }: { readonly job: ExportJobDetail }): VNode {
  const path = `/api/v1/analytics/exports/jobs/${encodeURIComponent(job_id)}`;
  return <Loaded of={useApi<ExportJob>(path, undefined, status)}>{(data) => <Files of={data} />}</Loaded>;
}

function Files({ of }: { readonly of: ExportJob }): VNode {
  const files = [...of.presigned_urls, ...(of.manifest === null ? [] : [of.manifest])];
  let none = 'There are none';
  if (of.files_expired) none = 'The files have expired';
  else if (of.end_time === null) none = 'Not written yet';
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
