import type { VNode } from 'preact';
import { useRoute } from 'preact-iso';
import type { ExportItem, ExportJob } from '../../../../api/export.ts';
import { screenHref, useQuery, withQuery } from '../../lib/address.ts';
import { api, apiPage } from '../../lib/api.ts';
import { formatBytes, formatCount } from '../../lib/format.ts';
import { jobHref } from '../../lib/jobs.ts';
import type { ExportFile } from '../../lib/records.ts';
import { useData } from '../../lib/use-data.ts';
import { StatusBadge } from '../../ui/badge.tsx';
import { CopyButton } from '../../ui/button.tsx';
import { Facts, Page, Section } from '../../ui/page.tsx';
import { Empty, Loaded, Notice } from '../../ui/problems.tsx';
import { type Column, Pager, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/text.tsx';

const path = '/api/v1/analytics/exports/jobs';
const everyMs = 2_000;

const columns: readonly Column<ExportItem>[] = [
  { title: 'Requested', cell: ({ start_time }) => <Time at={start_time} /> },
  { title: 'State', cell: ({ status }) => <StatusBadge status={status} /> },
  { title: 'Rows', is: 'num', cell: ({ rows }) => formatCount(rows) },
  { title: 'Size', is: 'num', cell: ({ bytes }) => formatBytes(bytes) },
  { title: 'Ended', is: 'num minor', cell: ({ end_time }) => <Time at={end_time} /> },
];

/** Lists the exports of the environment, newest first. */
export function History(): VNode {
  const query = useQuery();
  const asked = withQuery(path, { limit: 10, cursor: query.get('cursor') });
  const list = useData(asked, (signal) => apiPage<ExportItem>(asked, { signal }), { everyMs });
  return (
    <Section title="Exports" flush>
      <Loaded of={list} rows={4}>
        {(page) => (
          <>
            <Table
              caption="Exports, newest first"
              columns={columns}
              rows={page.items}
              keyOf={({ job_id }) => job_id}
              hrefOf={({ job_id }) => screenHref(`/export/${job_id}`)}
              isSelectable
              empty={<Empty title="Nothing has been exported yet" />}
            />
            {page.items.length === 0 ? null : <Pager page={page} one="export" />}
          </>
        )}
      </Loaded>
    </Section>
  );
}

/** Shows an export: its files with their hashes and links. */
export function ExportFiles(): VNode {
  const { job = '' } = useRoute().params;
  const own = `${path}/${encodeURIComponent(job)}`;
  const found = useData(own, (signal) => api<ExportJob>(own, { signal }), { everyMs });
  return (
    <Page
      title="Export"
      parent={{ title: 'Export', href: screenHref('/export') }}
      aside={found.data === undefined ? null : <StatusBadge status={found.data.status} />}
      actions={
        <a class="button" href={jobHref(job)}>
          The job
        </a>
      }
    >
      <Loaded of={found}>{(data) => <Files of={data} />}</Loaded>
    </Page>
  );
}

function Files({ of }: { readonly of: ExportJob }): VNode {
  const files = [...of.presigned_urls, ...(of.manifest === null ? [] : [of.manifest])];
  const isRunning = of.end_time === null;
  const none = of.files_expired ? 'The files have expired' : isRunning ? 'Not written yet' : 'There are none';
  return (
    <>
      {isRunning ? <progress value={of.progress} max={1} aria-label="Progress, estimated" /> : null}
      {of.failure === null ? null : (
        <Notice>
          {of.failure.message} <span class="problem-codes">{of.failure.error_code}</span>
        </Notice>
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
        <Table
          caption="Files of the export"
          columns={fileColumns}
          rows={files}
          keyOf={({ filename }) => filename}
          empty={<Empty title={none} />}
        />
      </Section>
    </>
  );
}

const fileColumns: readonly Column<ExportFile>[] = [
  {
    title: 'File',
    cell: ({ filename, url }) => (
      <a href={url} download={filename}>
        {filename}
      </a>
    ),
  },
  { title: 'Rows', is: 'num', cell: ({ rows }) => (rows === undefined ? '–' : formatCount(rows)) },
  { title: 'Size', is: 'num', cell: ({ bytes }) => formatBytes(bytes) },
  {
    title: 'SHA-256',
    is: 'minor',
    cell: ({ sha256 }) => (
      <span class="hash">
        <code title={sha256}>{sha256.slice(0, 16)}…</code>
        <CopyButton text={sha256} label="Copy hash" />
      </span>
    ),
  },
];
