import type { VNode } from 'preact';
import { useLocation, useRoute } from 'preact-iso';
import type { ExportItem, ExportJob, ExportPreview } from '../../../api/export.ts';
import {
  type Loaded as LoadedData,
  post,
  screenHref,
  useApi,
  useApiPage,
  useData,
  useQuery,
  withQuery,
} from '../lib/api.ts';
import { formatBytes, formatCount } from '../lib/format.ts';
import { jobHref, newScheduleHref } from '../lib/jobs.ts';
import { bodyOf, type ExportWish, exportFields, exportForms } from '../lib/repeat.ts';
import { ActionButton, Code, CopyAs, CopyButton } from '../ui/controls.tsx';
import { Facts, Loaded, Loading, Notice, Page, Problems, Section, StatusBadge, Time } from '../ui/page.tsx';
import { type Column, List, TableSection } from '../ui/table.tsx';
import { ExportForm } from './export-form.tsx';

const path = '/api/v1/analytics/exports';
const everyMs = 2_000;

/** Puts an export together. The server says what it would hold before it is started. */
export function Export(): VNode {
  const query = useQuery();
  const { route } = useLocation();
  const wish = Object.fromEntries(exportFields.map((name) => [name, query.get(name)])) as ExportWish;
  const body = bodyOf(wish);
  const preview = useData(JSON.stringify(body), (signal) =>
    post<ExportPreview>(`${path}/preview`, body, signal),
  );
  const start = async (): Promise<void> => {
    const { job_id } = await post<{ readonly job_id: string }>(path, body);
    route(screenHref(`/export/${job_id}`));
  };
  const counted = preview.error === null && !preview.isLoading ? preview.data : undefined;
  return (
    <Page
      title="Export"
      actions={
        <ActionButton look="main" needs="export" disabled={counted === undefined} act={start}>
          {counted === undefined ? 'Export' : `Export ${about(counted)} rows`}
        </ActionButton>
      }
    >
      <div class="columns">
        <ExportForm wish={wish} onChange={(change) => query.set({ ...change, cursor: undefined })} />
        <div class="stack">
          <PreviewPanel {...preview} />
          <Section title="As a command">
            <CopyAs forms={exportForms(body)} />
          </Section>
        </div>
      </div>
      <History />
    </Page>
  );
}

function about({ rows, is_exact }: { readonly rows: number; readonly is_exact: boolean }): string {
  return `${is_exact ? '' : 'about '}${formatCount(rows)}`;
}

const names: Readonly<Record<string, string>> = {
  users: 'Users',
  companies: 'Companies',
  events: 'Events',
  stream: 'Stream of all kinds',
};

/** Shows rows and size of the export, and how its files begin. */
function PreviewPanel({ data, error, isLoading, reload }: LoadedData<ExportPreview>): VNode {
  return (
    <Section title="Preview" aside={isLoading ? <span class="faint">Counting …</span> : null}>
      <Problems error={error} onRetry={reload} />
      {error !== null ? null : data === undefined ? (
        <Loading rows={5} label="Counting" />
      ) : (
        <div class="stack" aria-live="polite" aria-busy={isLoading}>
          <Facts
            of={[
              ['Rows', about(data)],
              ['Size, estimated', formatBytes(data.bytes)],
            ]}
          />
          {data.warnings.map(({ message, details }) => (
            <Notice key={details}>
              {message}: {details}
            </Notice>
          ))}
          {data.files.map((file) => (
            <div key={file.dataset} class="two-lines">
              <h3>
                {names[file.dataset] ?? file.dataset}{' '}
                <span class="faint num">
                  {about(file)} · {formatBytes(file.bytes)}
                </span>
              </h3>
              {file.first_rows.length === 0 ? (
                <p class="faint">No rows</p>
              ) : (
                <Code>
                  {file.header === null ? null : <b>{`${file.header}\n`}</b>}
                  {file.first_rows.join('\n')}
                </Code>
              )}
            </div>
          ))}
        </div>
      )}
    </Section>
  );
}

const columns: readonly Column<ExportItem>[] = [
  ['Requested', ({ start_time }) => <Time at={start_time} />],
  ['State', ({ status }) => <StatusBadge status={status} />],
  ['Rows', ({ rows }) => formatCount(rows), 'num'],
  ['Size', ({ bytes }) => formatBytes(bytes), 'num'],
  ['Ended', ({ end_time }) => <Time at={end_time} />, 'num minor'],
];

/** Lists the exports of the environment, newest first. */
function History(): VNode {
  const query = useQuery();
  const asked = withQuery(`${path}/jobs`, { limit: 10, cursor: query.get('cursor') });
  return (
    <>
      <h2>Exports</h2>
      <List
        of={useApiPage<ExportItem>(asked, everyMs)}
        one="export"
        caption="Exports, newest first"
        columns={columns}
        keyOf={({ job_id }) => job_id}
        hrefOf={({ job_id }) => screenHref(`/export/${job_id}`)}
        empty="Nothing has been exported yet"
      />
    </>
  );
}

/** Shows an export: its files with their hashes and links. */
export function ExportFiles(): VNode {
  const { job = '' } = useRoute().params;
  const found = useApi<ExportJob>(`${path}/jobs/${encodeURIComponent(job)}`, everyMs);
  return (
    <Page
      title="Export"
      parent={{ title: 'Export', href: screenHref('/export') }}
      aside={found.data === undefined ? null : <StatusBadge status={found.data.status} />}
      actions={
        <>
          <a class="button" href={jobHref(job)}>
            The job
          </a>
          <a class="button" href={newScheduleHref(job)}>
            Schedule …
          </a>
        </>
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
          {of.failure.message} <span class="codes">{of.failure.error_code}</span>
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
            [
              'Cursor',
              <span key="cursor" class="mono break">
                {of.cursor ?? '–'}
              </span>,
            ],
          ]}
        />
      </Section>
      <TableSection
        title="Files"
        of={files}
        caption="Files of the export"
        columns={fileColumns}
        keyOf={({ filename }) => filename}
        empty={none}
      />
    </>
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
