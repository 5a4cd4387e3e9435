import type { ComponentChildren, RefObject, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import type { RejectPage } from '../../../../api/reject.ts';
import { post, useAction, useApi, withQuery } from '../../lib/api.ts';
import { plural } from '../../lib/format.ts';
import { jobPath, refusedState } from '../../lib/jobs.ts';
import { Button } from '../../ui/controls.tsx';
import { Empty, Loading, Problems, Section, VisibleText } from '../../ui/page.tsx';
import { Pager } from '../../ui/table.tsx';
import { Label } from '../../ui/term.tsx';
import { type RefusedProps, Replace } from './causes.tsx';
import { bodyOf, type Edits, type RecordEdit, Row, stillRefused } from './row.tsx';

const none: Edits = new Map();

/** Keeps the edits of records, those on their way too until what came of them is shown. */
function useEdits({ amendments }: LoadDetail, page: RejectPage | undefined, cause: string) {
  const [edits, setEdits] = useState<Edits>(none);
  const [sent, setSent] = useState<{ jobId: string; rows: ReadonlySet<number> }>({
    jobId: '',
    rows: new Set(),
  });
  const status = amendments.find(({ job_id }) => job_id === sent.jobId)?.status;
  const isSending = sent.jobId !== '' && status !== 'failed' && status !== 'cancelled';
  useEffect(() => {
    if (status === 'completed') {
      setEdits((before) => new Map([...before].filter(([row]) => !sent.rows.has(row))));
      setSent({ ...sent, jobId: '' });
    }
    // With all causes shown, a record that has left the page was mended by somebody.
    if (cause === '') setEdits((before) => stillRefused(before, page?.data ?? []));
  }, [page]);
  return {
    edits,
    unsent: isSending ? new Map([...edits].filter(([row]) => !sent.rows.has(row))) : edits,
    isSending,
    isSent: (row: number) => isSending && sent.rows.has(row),
    isAgain: (row: number) => sent.jobId === '' && sent.rows.has(row),
    follow: (jobId: string, rows: Iterable<number>) => setSent({ jobId, rows: new Set(rows) }),
    discard: () =>
      setEdits((before) => new Map([...before].filter(([row]) => isSending && sent.rows.has(row)))),
    set: (row: number, edit: RecordEdit | null) =>
      setEdits((before) => {
        const others = [...before].filter(([each]) => each !== row);
        return new Map(edit === null ? others : [...others, [row, edit]]);
      }),
  };
}

const rowsOnPage = 50;

/** The refused records, each to be mended in its place. Edits are sent back to the same job. */
export function Grid({ query, job, onChange }: RefusedProps): VNode {
  const cause = query.get('cause');
  const own = jobPath(job.job_id);
  const path = withQuery(`${own}/rejects`, { limit: rowsOnPage, cause, cursor: query.get('cursor') });
  const page = useApi<RejectPage>(path, undefined, refusedState(job));
  const { data: shown = [], metadata } = page.data ?? {};
  const columns = metadata?.columns ?? null;
  const { edits, unsent, ...mine } = useEdits(job, page.data, cause);
  const send = useAction(async () => {
    const { job_id } = await post<{ readonly job_id: string }>(`${own}/rejects/edits`, bodyOf(unsent));
    mine.follow(job_id, unsent.keys());
    onChange();
  });
  const place = useShown(cause);
  const total = metadata?.total_count ?? 0;
  return (
    <div ref={place} tabIndex={-1}>
      <Section title={cause === '' ? 'Records' : 'Records of this cause'} flush>
        <Problems error={page.error} onRetry={page.reload} />
        {columns === null || shown.length === 0 ? null : (
          <Replace
            {...{ job, cause, columns, total, onChange }}
            key={cause}
            fault={shown[0]?.column ?? null}
          />
        )}
        {page.data === undefined && page.error === null ? <Loading rows={10} /> : null}
        {page.data !== undefined && shown.length === 0 ? <Empty title="No records on this page" /> : null}
        {shown.length === 0 ? null : (
          <Records columns={columns}>
            {shown.map((reject) => (
              <Row
                key={reject.row}
                reject={reject}
                columns={columns}
                edit={edits.get(reject.row)}
                isSent={mine.isSent(reject.row)}
                isAgain={mine.isAgain(reject.row)}
                onChange={(edit) => mine.set(reject.row, edit)}
              />
            ))}
          </Records>
        )}
        {unsent.size === 0 && send.error === null ? null : (
          <div class="row foot-bar">
            <Problems error={send.error} />
            <p class="push" role="status">
              {plural(unsent.size, 'record')} mended here, not sent yet
            </p>
            <Button look="quiet" onClick={mine.discard}>
              Discard
            </Button>
            <Button
              look="main"
              needs="import"
              disabled={send.isRunning || mine.isSending || unsent.size === 0}
              onClick={() => void send.run()}
            >
              Send {plural(unsent.size, 'record')} back
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

interface RecordsProps {
  readonly columns: readonly string[] | null;
  readonly children: ComponentChildren;
}

function Records({ columns, children }: RecordsProps): VNode {
  return (
    <div class="table-scroll">
      <table class="table refused-grid">
        <caption class="visually-hidden">Refused records; each can be mended</caption>
        <thead>
          <tr>
            <th scope="col" class="num">
              <Label text="Row" />
            </th>
            {[...(columns ?? ['Record']), 'Reason', 'As written'].map((name, at) => (
              <th key={`${at} ${name}`} scope="col">
                <bdi>
                  <VisibleText text={name} />
                </bdi>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
