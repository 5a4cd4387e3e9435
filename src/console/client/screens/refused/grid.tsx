import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { api, mayUse, withQuery } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { type Action, useAction, useData } from '../../lib/use-data.ts';
import type { Query } from '../../lib/use-query.ts';
import { Icon } from '../../ui/icons.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty, Loading, Problems } from '../../ui/problems.tsx';
import { VisibleText } from '../../ui/visible-text.tsx';
import type { LoadDetail } from '../load/load-record.ts';
import {
  type Mended,
  type MendedRecord,
  type Reject,
  type RejectPage,
  toCsv,
  toNdjson,
} from './reject-record.ts';
import { Replace } from './replace.tsx';
import { Row } from './row.tsx';

interface Props {
  readonly query: Query;
  readonly job: LoadDetail;
  readonly onChange: () => void;
}

const rowsOnPage = 50;

/** The records themselves, each cell to be mended in its place; what is mended is sent back to the same job. */
export function Grid({ query, job, onChange }: Props): VNode {
  const cause = query.get('cause');
  const path = withQuery(`/v1/background_jobs/${job.job_id}/rejects`, {
    limit: rowsOnPage,
    cause,
    cursor: query.get('cursor'),
  });
  const page = useData(`${path} ${job.counts.rejected}`, (signal) => api<RejectPage>(path, { signal }));
  const [mended, setMended] = useState<Mended>(new Map());
  const rejects = page.data?.data ?? [];
  const columns = page.data?.metadata.columns ?? null;
  // Rows that are mended by now, by whomever, are no longer to be sent.
  useEffect(() => setMended((before) => stillRefused(before, rejects)), [page.data]);
  const send = useAction(async () => {
    await sendBack(job.job_id, mended, columns);
    setMended(new Map());
    onChange();
  });
  return (
    <Section title={cause === '' ? 'Records' : 'Records of this cause'} flush>
      <Problems error={page.error} onRetry={page.reload} />
      {columns === null || rejects.length === 0 ? null : (
        <Replace
          rejects={rejects}
          columns={columns}
          mended={mended}
          onChange={setMended}
          all={{ jobId: job.job_id, cause, total: page.data?.metadata.total_count ?? 0, onChange }}
        />
      )}
      {page.data === undefined ? <Loading rows={10} /> : null}
      {page.data !== undefined && rejects.length === 0 ? <Empty title="None on this page" /> : null}
      {rejects.length === 0 ? null : (
        <Records
          rejects={rejects}
          columns={columns}
          mended={mended}
          onChange={(row, record) => setMended(withRecord(mended, row, record))}
        />
      )}
      <SendBar send={send} count={mended.size} onDrop={() => setMended(new Map())} />
      <Pages query={query} page={page.data} />
    </Section>
  );
}

function withRecord(mended: Mended, row: number, record: MendedRecord | null): Mended {
  const next = new Map(mended);
  if (record === null) next.delete(row);
  else next.set(row, record);
  return next;
}

function stillRefused(mended: Mended, rejects: readonly Reject[]): Mended {
  const rows = new Set(rejects.map(({ row }) => row));
  return new Map([...mended].filter(([row]) => rows.has(row)));
}

/** A CSV is written with commas here, and an apostrophe before a formula is the record's own. */
async function sendBack(jobId: string, mended: Mended, columns: readonly string[] | null): Promise<void> {
  const path = `/v1/background_jobs/${jobId}/amend`;
  const asCsv = { delimiter: 'comma', quote: '"', escape: '"', encoding: 'utf-8', apostrophes: 'keep' };
  if (columns === null) {
    const headers = { 'content-type': 'application/x-ndjson' };
    await api(path, { method: 'POST', body: toNdjson(mended), headers });
  } else {
    const headers = { 'content-type': 'text/csv' };
    await api(withQuery(path, asCsv), { method: 'POST', body: toCsv(mended, columns), headers });
  }
}

interface RecordsProps {
  readonly rejects: readonly Reject[];
  readonly columns: readonly string[] | null;
  readonly mended: Mended;
  readonly onChange: (row: number, record: MendedRecord | null) => void;
}

function Records({ rejects, columns, mended, onChange }: RecordsProps): VNode {
  return (
    <div class="table-scroll">
      <table class="table refused-grid">
        <caption class="visually-hidden">Refused records; each can be mended</caption>
        <thead>
          <tr>
            <th scope="col" class="num">
              Row
            </th>
            {columns === null ? (
              <th scope="col">Record</th>
            ) : (
              columns.map((name, at) => (
                <th key={`${at} ${name}`} scope="col">
                  <VisibleText text={name} />
                </th>
              ))
            )}
            <th scope="col">Reason</th>
            <th scope="col">Bytes</th>
          </tr>
        </thead>
        <tbody>
          {rejects.map((reject) => (
            <Row
              key={reject.row}
              reject={reject}
              columns={columns}
              mended={mended.get(reject.row)}
              onChange={(record) => onChange(reject.row, record)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface SendBarProps {
  readonly send: Action;
  readonly count: number;
  readonly onDrop: () => void;
}

function SendBar({ send, count, onDrop }: SendBarProps): VNode | null {
  if (count === 0 && send.error === null) return null;
  return (
    <div class="send-bar">
      <Problems error={send.error} />
      <p role="status">{plural(count, 'record')} mended here, not sent yet</p>
      <button type="button" class="button button-quiet" onClick={onDrop}>
        Discard
      </button>
      <button
        type="button"
        class="button button-main"
        disabled={send.isRunning || count === 0 || !mayUse('import')}
        onClick={() => void send.run()}
      >
        Send {plural(count, 'record')} back
      </button>
    </div>
  );
}

function Pages({
  query,
  page,
}: {
  readonly query: Query;
  readonly page: RejectPage | undefined;
}): VNode | null {
  if (page === undefined) return null;
  const { total_count: total, cursor } = page.metadata;
  return (
    <nav class="pager" aria-label="Pages of refused records">
      <span class="pager-count faint num">
        {formatCount(page.data.length)} of {plural(total, 'record')}
      </span>
      {query.get('cursor') === '' ? null : (
        <a class="button" href={query.href({ cursor: undefined })}>
          First page
        </a>
      )}
      {cursor.after === null ? null : (
        <a class="button" href={query.href({ cursor: cursor.after })}>
          Next page
          <Icon name="next" size={12} />
        </a>
      )}
    </nav>
  );
}
