import type { RefObject, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import type { Reject, RejectPage } from '../../../../api/reject.ts';
import { type Query, withQuery } from '../../lib/address.ts';
import { api, type Page } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { jobPath, refusedState } from '../../lib/jobs.ts';
import { type Action, useAction, useData } from '../../lib/use-data.ts';
import { Button } from '../../ui/button.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty, Loading, Notice, Problems } from '../../ui/problems.tsx';
import { Pager } from '../../ui/table.tsx';
import { VisibleText } from '../../ui/text.tsx';
import { bodyOf, type Edits, type RecordEdit } from './reject-record.ts';
import { Replace } from './replace.tsx';
import { Row } from './row.tsx';
import { type Sent, useSent } from './use-sent.ts';

interface Props {
  readonly query: Query;
  readonly job: LoadDetail;
  readonly onChange: () => void;
}

const rowsOnPage = 50;

/** The refused records, each to be mended in its place. Edits are sent back to the same job. */
export function Grid({ query, job, onChange }: Props): VNode {
  const cause = query.get('cause');
  const path = withQuery(`${jobPath(job.job_id)}/rejects`, {
    limit: rowsOnPage,
    cause,
    cursor: query.get('cursor'),
  });
  const [edits, setEdits] = useState<Edits>(new Map());
  const sent = useSent((unsent) => {
    setEdits((since) => new Map([...unsent, ...since]));
    onChange();
  });
  const page = useData(`${path} ${refusedState(job)}`, (signal) => api<RejectPage>(path, { signal }));
  const shown = page.data?.data ?? [];
  const columns = page.data?.metadata.columns ?? null;
  // With all causes shown, a record that has left the page was mended by somebody.
  useEffect(() => {
    if (cause === '') setEdits((before) => stillRefused(before, shown));
  }, [page.data]);
  const send = useAction(async () => {
    const { job_id } = await api<{ readonly job_id: string }>(`${jobPath(job.job_id)}/rejects/edits`, {
      method: 'POST',
      body: bodyOf(edits, columns),
    });
    sent.follow(job_id, edits);
    setEdits(new Map());
  });
  const again = sent.again.filter(({ row }) => shown.every((each) => each.row !== row));
  const rejects = [...again, ...shown];
  const set = (row: number, edit: RecordEdit | null): void =>
    setEdits((before) => withEdit(before, row, edit));
  const place = useShown(cause);
  return (
    <div ref={place} tabIndex={-1} class="refused-records">
      <Section title={cause === '' ? 'Records' : 'Records of this cause'} flush>
        <Problems error={page.error} onRetry={page.reload} />
        {columns === null || rejects.length === 0 ? null : (
          <Replace
            rejects={rejects}
            columns={columns}
            edits={edits}
            onChange={setEdits}
            all={{ jobId: job.job_id, cause, total: page.data?.metadata.total_count ?? 0, onChange }}
          />
        )}
        <Again sent={sent} />
        {page.data === undefined ? <Loading rows={10} /> : null}
        {page.data !== undefined && rejects.length === 0 ? <Empty title="None on this page" /> : null}
        {rejects.length === 0 ? null : (
          <Records rejects={rejects} columns={columns} edits={edits} sent={sent} onChange={set} />
        )}
        <SendBar send={send} count={edits.size} onDrop={() => setEdits(new Map())} />
        {page.data === undefined ? null : <Pager page={asPage(page.data)} one="refused record" />}
      </Section>
    </div>
  );
}

/** Scrolls to the records of a cause when it is chosen: they may be far below. */
function useShown(cause: string): RefObject<HTMLDivElement | null> {
  const place = useRef<HTMLDivElement>(null);
  const shown = useRef(cause);
  useEffect(() => {
    if (cause !== '' && cause !== shown.current) {
      place.current?.scrollIntoView();
      place.current?.focus({ preventScroll: true });
    }
    shown.current = cause;
  }, [cause]);
  return place;
}

function withEdit(edits: Edits, row: number, edit: RecordEdit | null): Edits {
  const next = new Map(edits);
  if (edit === null) next.delete(row);
  else next.set(row, edit);
  return next;
}

/** Drops the edits of rows that have left this page. Edits of other pages are kept. */
function stillRefused(edits: Edits, shown: readonly Reject[]): Edits {
  const rows = new Set(shown.map(({ row }) => row));
  const [first = Number.POSITIVE_INFINITY, last = 0] = [shown[0]?.row, shown.at(-1)?.row];
  return new Map([...edits].filter(([row]) => rows.has(row) || row < first || row > last));
}

/** Tells of records that were sent and refused again. */
function Again({ sent }: { readonly sent: Sent }): VNode | null {
  const count = sent.again.length;
  if (sent.failure !== null) return <Notice>{`Nothing of it was loaded: ${sent.failure}`}</Notice>;
  if (count === 0) return null;
  return (
    <Notice>
      {`${plural(count, 'record')} of ${formatCount(sent.count)} ${count === 1 ? 'was' : 'were'} refused again, and shown here as sent. Look at the reason.`}
    </Notice>
  );
}

interface RecordsProps {
  readonly rejects: readonly Reject[];
  readonly columns: readonly string[] | null;
  readonly edits: Edits;
  readonly sent: Sent;
  readonly onChange: (row: number, edit: RecordEdit | null) => void;
}

function Records({ rejects, columns, edits, sent, onChange }: RecordsProps): VNode {
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
              edit={sent.edits.get(reject.row) ?? edits.get(reject.row)}
              isAgain={sent.again.some(({ row }) => row === reject.row)}
              isSent={sent.edits.has(reject.row)}
              onChange={(edit) => onChange(reject.row, edit)}
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
      <Button look="quiet" onClick={onDrop}>
        Discard
      </Button>
      <Button
        look="main"
        needs="import"
        disabled={send.isRunning || count === 0}
        onClick={() => void send.run()}
      >
        Send {plural(count, 'record')} back
      </Button>
    </div>
  );
}

function asPage({ data, metadata }: RejectPage): Page<Reject> {
  return { items: data, total: metadata.total_count, next: metadata.cursor.after };
}
