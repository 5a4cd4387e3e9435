import type { VNode } from 'preact';
import { useRoute } from 'preact-iso';
import { api, apiPage, withQuery } from '../lib/api.ts';
import { formatBytes, formatCount } from '../lib/format.ts';
import { screenHref } from '../lib/place.ts';
import { useData } from '../lib/use-data.ts';
import { useQuery } from '../lib/use-query.ts';
import { StatusBadge } from '../ui/badge.tsx';
import { CopyButton } from '../ui/copy.tsx';
import { Facts, Page, Section } from '../ui/page.tsx';
import { Pager } from '../ui/pager.tsx';
import { Empty, Loading, Problems } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';

const path = '/api/v1/analytics/exports/jobs';
const pollMs = 2_000;

interface ExportItem {
  readonly job_id: string;
  readonly status: string;
  readonly progress: number;
  readonly start_time: string;
  readonly end_time: string | null;
  readonly rows: number;
  readonly bytes: number;
}

interface ExportFile {
  readonly filename: string;
  readonly url: string;
  readonly rows?: number;
  readonly bytes: number;
  readonly sha256: string;
}

interface ExportDetail extends ExportItem {
  readonly snapshot_time: string | null;
  readonly presigned_urls: readonly ExportFile[];
  readonly manifest: ExportFile | null;
  readonly files_expired: boolean;
  readonly failure: { readonly error_code: string; readonly message: string } | null;
}

const columns: readonly Column<ExportItem>[] = [
  { id: 'start', title: 'Requested', cell: ({ start_time }) => <Time at={start_time} /> },
  { id: 'status', title: 'State', cell: ({ status }) => <StatusBadge status={status} /> },
  { id: 'rows', title: 'Rows', isNumber: true, cell: ({ rows }) => formatCount(rows) },
  { id: 'bytes', title: 'Size', isNumber: true, cell: ({ bytes }) => formatBytes(bytes) },
  {
    id: 'end',
    title: 'Ended',
    isNumber: true,
    isMinor: true,
    cell: ({ end_time }) => <Time at={end_time} />,
  },
];

/** The exports of the environment, newest first. */
export function History(): VNode {
  const query = useQuery();
  const asked = withQuery(path, { limit: 10, cursor: query.get('cursor') });
  const list = useData(asked, (signal) => apiPage<ExportItem>(asked, { signal }), { everyMs: pollMs });
  return (
    <Section title="Exports" flush>
      <Problems error={list.error} onRetry={list.reload} />
      {list.data === undefined ? (
        <Loading rows={4} />
      ) : list.data.items.length === 0 ? (
        <Empty title="Nothing has been exported yet" />
      ) : (
        <>
          <Table
            caption="Exports, newest first"
            columns={columns}
            rows={list.data.items}
            keyOf={({ job_id }) => job_id}
            hrefOf={({ job_id }) => screenHref(`/export/${job_id}`)}
            selected={query.get('row')}
            onSelect={(row) => query.set({ row }, { replace: true })}
          />
          <Pager page={list.data} noun={list.data.total === 1 ? 'export' : 'exports'} />
        </>
      )}
    </Section>
  );
}

/** One export: its files with their hashes and links. */
export function ExportFiles(): VNode {
  const { job = '' } = useRoute().params;
  const own = `${path}/${encodeURIComponent(job)}`;
  const { data, error, reload } = useData(own, (signal) => api<ExportDetail>(own, { signal }), {
    everyMs: pollMs,
  });
  return (
    <Page
      title="Export"
      parent={{ title: 'Export', href: screenHref('/export') }}
      aside={data === undefined ? null : <StatusBadge status={data.status} />}
      actions={
        <a class="button" href={screenHref(`/jobs/${job}`)}>
          The job
        </a>
      }
    >
      <Problems error={error} onRetry={reload} />
      {data === undefined ? <Loading /> : <Files of={data} />}
    </Page>
  );
}

function Files({ of }: { readonly of: ExportDetail }): VNode {
  const files = [...of.presigned_urls, ...(of.manifest === null ? [] : [of.manifest])];
  const isRunning = of.end_time === null;
  return (
    <>
      {isRunning ? <progress value={of.progress} max={1} aria-label="Progress, estimated" /> : null}
      {of.failure === null ? null : (
        <p class="notice">
          {of.failure.message} <span class="problem-codes">{of.failure.error_code}</span>
        </p>
      )}
      <Section title="Contents">
        <Facts
          of={[
            ['Rows', formatCount(of.rows)],
            ['Size', formatBytes(of.bytes)],
            ['Requested', <Time key="start" at={of.start_time} />],
            ['Snapshot', <Time key="snapshot" at={of.snapshot_time} />],
            ['Ended', <Time key="end" at={of.end_time} />],
          ]}
        />
      </Section>
      <Section title="Files" flush>
        {files.length === 0 ? (
          <Empty
            title={
              of.files_expired ? 'The files have expired' : isRunning ? 'Not written yet' : 'There are none'
            }
          />
        ) : (
          <Table
            caption="Files of the export"
            columns={fileColumns}
            rows={files}
            keyOf={({ filename }) => filename}
          />
        )}
      </Section>
    </>
  );
}

const fileColumns: readonly Column<ExportFile>[] = [
  {
    id: 'name',
    title: 'File',
    cell: ({ filename, url }) => (
      <a href={url} download={filename}>
        {filename}
      </a>
    ),
  },
  {
    id: 'rows',
    title: 'Rows',
    isNumber: true,
    cell: ({ rows }) => (rows === undefined ? '–' : formatCount(rows)),
  },
  { id: 'bytes', title: 'Size', isNumber: true, cell: ({ bytes }) => formatBytes(bytes) },
  {
    id: 'sha256',
    title: 'SHA-256',
    isMinor: true,
    cell: ({ sha256 }) => (
      <span class="hash">
        <code title={sha256}>{sha256.slice(0, 16)}…</code>
        <CopyButton text={sha256} label="Copy hash" />
      </span>
    ),
  },
];
