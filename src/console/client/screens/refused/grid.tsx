import type { RefObject, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import type { Reject, RejectPage } from '../../../../api/reject.ts';
import { api, post, type Query, useAction, useApi, useData, withQuery } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { isUnfinished, jobPath, refusedState, useLoad } from '../../lib/jobs.ts';
import { Button } from '../../ui/controls.tsx';
import { Empty, Loading, Notice, Problems, Section, VisibleText } from '../../ui/page.tsx';
import { Pager } from '../../ui/table.tsx';
import { Replace } from './causes.tsx';
import { bodyOf, type Edits, type RecordEdit, Row, stillRefused } from './row.tsx';

const none: Edits = new Map();
/** The most records shown as refused again; all of them are in the list. */
const shownAgain = 200;

/** Follows the job of the edits that were sent last. `onEnd` receives those to send again because the job failed. */
function useSent(onEnd: (unsent: Edits) => void) {
  const [{ jobId, edits }, setSent] = useState({ jobId: '', edits: none });
  const [outcome, setOutcome] = useState<LoadDetail | null>(null);
  const isOver = jobId === (outcome?.job_id ?? '');
  const job = useLoad(isOver ? '' : jobId);
  const over = job.data !== undefined && !isUnfinished(job.data) ? job.data : undefined;
  const isRefused = outcome !== null && outcome.counts.rejected > 0;
  const path = `${jobPath(jobId)}/rejects?limit=${shownAgain}`;
  const refused = useData(isRefused ? path : null, async (signal) => ({
    of: jobId,
    rejects: (await api<RejectPage>(path, { signal })).data,
  }));
  useEffect(() => {
    if (over === undefined || isOver) return;
    setOutcome(over);
    onEnd(over.status === 'completed' ? none : edits);
  }, [over, jobId]);
  // The records of the job are numbered anew, in the order of the rows.
  const rows = [...edits.keys()].sort((a, b) => a - b);
  const again = isRefused && refused.data?.of === jobId ? refused.data.rejects : [];
  return {
    /** The edits under way; empty once their job has ended. */
    edits: isOver ? none : edits,
    /** The number of edits that were sent. */
    count: edits.size,
    /** Their records that were refused again, in their current state. */
    again: again.map((reject): Reject => ({ ...reject, row: rows[reject.row - 1] ?? 0 })),
    /** The reason why their job did not complete. */
    failure:
      outcome === null || outcome.status === 'completed'
        ? null
        : (outcome.failure?.message ?? outcome.status),
    follow: (job_id: string, sent: Edits) => {
      setOutcome(null);
      setSent({ jobId: job_id, edits: sent });
    },
  };
}

type Sent = ReturnType<typeof useSent>;

interface Props {
  readonly query: Query;
  readonly job: LoadDetail;
  readonly onChange: () => void;
}

const rowsOnPage = 50;

/** The refused records, each to be mended in its place. Edits are sent back to the same job. */
export function Grid({ query, job, onChange }: Props): VNode {
  const cause = query.get('cause');
  const own = jobPath(job.job_id);
  const path = withQuery(`${own}/rejects`, { limit: rowsOnPage, cause, cursor: query.get('cursor') });
  const [edits, setEdits] = useState<Edits>(none);
  const sent = useSent((unsent) => {
    setEdits((since) => new Map([...unsent, ...since]));
    onChange();
  });
  const page = useApi<RejectPage>(path, undefined, refusedState(job));
  const { data: shown = [], metadata } = page.data ?? {};
  const columns = metadata?.columns ?? null;
  // With all causes shown, a record that has left the page was mended by somebody.
  useEffect(() => {
    if (cause === '') setEdits((before) => stillRefused(before, shown));
  }, [page.data]);
  const send = useAction(async () => {
    const body = bodyOf(edits, columns);
    sent.follow((await post<{ readonly job_id: string }>(`${own}/rejects/edits`, body)).job_id, edits);
    setEdits(none);
  });
  const again = sent.again.filter(({ row }) => shown.every((each) => each.row !== row));
  const rejects = [...again, ...shown];
  const set = (row: number, edit: RecordEdit | null): void =>
    setEdits((before) => {
      const others = [...before].filter(([each]) => each !== row);
      return new Map(edit === null ? others : [...others, [row, edit]]);
    });
  const place = useShown(cause);
  const total = metadata?.total_count ?? 0;
  return (
    <div ref={place} tabIndex={-1}>
      <Section title={cause === '' ? 'Records' : 'Records of this cause'} flush>
        <Problems error={page.error} onRetry={page.reload} />
        {columns === null || rejects.length === 0 ? null : (
          <Replace job={job} cause={cause} columns={columns} total={total} onChange={onChange} />
        )}
        <Again sent={sent} />
        {page.data === undefined ? <Loading rows={10} /> : null}
        {page.data !== undefined && rejects.length === 0 ? <Empty title="None on this page" /> : null}
        {rejects.length === 0 ? null : (
          <Records rejects={rejects} columns={columns} edits={edits} sent={sent} onChange={set} />
        )}
        {edits.size === 0 && send.error === null ? null : (
          <div class="row send-bar">
            <Problems error={send.error} />
            <p class="push" role="status">
              {plural(edits.size, 'record')} mended here, not sent yet
            </p>
            <Button look="quiet" onClick={() => setEdits(none)}>
              Discard
            </Button>
            <Button
              look="main"
              needs="import"
              disabled={send.isRunning || edits.size === 0}
              onClick={() => void send.run()}
            >
              Send {plural(edits.size, 'record')} back
            </Button>
          </div>
        )}
        {metadata === undefined ? null : (
          <Pager page={{ items: shown, total, next: metadata.cursor.after }} one="refused record" />
        )}
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

/** Tells of records that were sent and refused again. */
function Again({ sent: { again, count, failure } }: { readonly sent: Sent }): VNode | null {
  if (failure !== null) return <Notice>{`Nothing of it was loaded: ${failure}`}</Notice>;
  if (again.length === 0) return null;
  const was = again.length === 1 ? 'was' : 'were';
  return (
    <Notice>
      {`${plural(again.length, 'record')} of ${formatCount(count)} ${was} refused again, and shown here as sent. Look at the reason.`}
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
  const titles = columns ?? ['Record'];
  return (
    <div class="table-scroll">
      <table class="table refused-grid">
        <caption class="visually-hidden">Refused records; each can be mended</caption>
        <thead>
          <tr>
            <th scope="col" class="num">
              Row
            </th>
            {[...titles, 'Reason', 'As written'].map((name, at) => (
              <th key={`${at} ${name}`} scope="col">
                <VisibleText text={name} />
              </th>
            ))}
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
