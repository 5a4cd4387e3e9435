import type { VNode } from 'preact';
import { screenHref, useQuery } from '../../console/client/lib/address.ts';
import { post } from '../../console/client/lib/api.ts';
import { type Loaded as LoadedData, useApi, useApiPage, useData } from '../../console/client/lib/data.ts';
import { formatBytes, formatCount, shorten, visibleText } from '../../console/client/lib/format.ts';
import { jobHref, jobPath, useStart } from '../../console/client/lib/jobs.ts';
import { ActionButton } from '../../console/client/ui/controls.tsx';
import { type Column, List } from '../../console/client/ui/list.tsx';
import { Loading, Notice, Page, Problems, Section, Time } from '../../console/client/ui/page.tsx';
import { Value } from '../../console/client/ui/properties.tsx';
import type { JobListItem } from '../../http/job.ts';
import type { ExportJobDetail, ExportPreview } from '../api.ts';
import { ExportForm } from './export-form.tsx';
import { ExportAgain } from './job.tsx';
import { bodyOf, type ExportWish, exportFields, exportOf, exportsPath, rowsText } from './request.tsx';

/** The service computes a preview while the user fills in the form. */
export function Export(): VNode {
  const query = useQuery();
  const start = useStart();
  const wish = Object.fromEntries(exportFields.map((name) => [name, query.get(name)])) as ExportWish;
  const body = bodyOf(wish);
  const preview = useData(JSON.stringify(body), (signal) =>
    post<ExportPreview>(`${exportsPath}/preview`, body, signal),
  );
  const counts = preview.error === null && !preview.isLoading ? preview.data : undefined;
  return (
    <Page
      title="Export"
      actions={
        <ActionButton
          look="main"
          scopes="export"
          disabled={counts === undefined}
          act={() => start(exportsPath, body)}
        >
          {counts === undefined ? 'Export' : `Export ${rowsText(counts)}`}
        </ActionButton>
      }
    >
      <ExportForm wish={wish} onChange={query.set} />
      <Preview {...preview} />
      <Earlier />
    </Page>
  );
}

const shownExports = 3;

function Earlier(): VNode | null {
  const list = useApiPage<JobListItem>(`/v1/background_jobs?type=export&limit=${shownExports}`);
  if (list.data === undefined || list.data.items.length === 0) return null;
  return (
    <List
      title="Earlier exports"
      aside={<a href={screenHref('/jobs', { type: 'export' })}>All</a>}
      of={list.data.items}
      isTall
      columns={earlierColumns}
      keyOf={({ job_id }) => job_id}
      hrefOf={({ job_id }) => jobHref(job_id)}
    />
  );
}

const earlierColumns: readonly Column<JobListItem>[] = [
  ['Accepted', ({ start_time }) => <Time at={start_time} />],
  ['Again', ({ job_id }) => <Again id={job_id} />],
  ['Rows', ({ total_rows }) => formatCount(total_rows), 'num'],
];

function Again({ id }: { readonly id: string }): VNode | null {
  const { data } = useApi<ExportJobDetail>(jobPath(id));
  if (data === undefined) return null;
  const words = Object.entries(exportOf(data)).map(
    ([name, value]) => `${name} ${visibleText(textOf(value))}`,
  );
  return (
    <span class="row">
      <ExportAgain job={data} />
      <span class="muted break">
        {[...words, ...(data.options_cut ? ['…'] : [])].join(', ') || 'everything'}
      </span>
    </span>
  );
}

function textOf(value: unknown): string {
  return typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(value) : String(value);
}

const names: Readonly<Record<string, string>> = {
  users: 'Users',
  companies: 'Companies',
  events: 'Events',
  stream: 'Stream of all kinds',
};

function Preview({ data, error, isLoading, reload }: LoadedData<ExportPreview>): VNode {
  if (error !== null) return <Problems error={error} onRetry={reload} />;
  if (data === undefined)
    return (
      <Section title="Preview">
        <Loading rows={5} label="Counting" />
      </Section>
    );
  return (
    <div class="stack" aria-live="polite" aria-busy={isLoading}>
      {data.warnings.map(({ message, details }) => (
        <Notice key={details}>
          {message}: {details}
        </Notice>
      ))}
      {data.files.map((file) => (
        <FilePreview key={file.dataset} of={file} />
      ))}
    </div>
  );
}

const mostCharacters = 60;

type Cells = ReadonlyMap<string, unknown>;

function FilePreview({ of: file }: { readonly of: ExportPreview['files'][number] }): VNode {
  const rows = rowsOf(file);
  const columns = [...new Set(rows.flatMap((cells) => [...cells.keys()]))];
  const title = names[file.dataset] ?? file.dataset;
  return (
    <List
      title={title}
      aside={
        <span class="faint num">
          {rowsText(file)} · {formatBytes(file.bytes)}
        </span>
      }
      of={rows}
      columns={columns.map(
        (name): Column<Cells> => [
          <bdi key={name}>{visibleText(name)}</bdi>,
          (cells) => {
            const value = cells.get(name);
            return <Value of={typeof value === 'string' ? shorten(value, mostCharacters) : value} />;
          },
        ],
      )}
      empty="No rows"
    />
  );
}

/** Cells by column name. A JSON row that was cut becomes a single cell. */
function rowsOf({ header, first_rows: rows }: ExportPreview['files'][number]) {
  const columns = header === null ? [] : csvCells(header);
  return rows.map((row): Cells => {
    if (header !== null) return new Map(csvCells(row).map((cell, at) => [columns[at] ?? `${at + 1}`, cell]));
    try {
      const { metadata = {}, ...fields } = JSON.parse(row) as { readonly metadata?: object };
      return new Map(Object.entries({ ...fields, ...metadata }));
    } catch {
      return new Map([['row', row]]);
    }
  });
}

function csvCells(line: string): readonly string[] {
  const cells = `,${line}`.matchAll(/,(?:"((?:[^"]|"")*)"?|([^,]*))/g);
  return [...cells].map(([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain);
}
