import { parts } from 'sluice:capabilities';
import type { ComponentChildren, RefObject, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import { apiHref, type Query, useQuery, withQuery } from '../../console/client/lib/address.ts';
import { api } from '../../console/client/lib/api.ts';
import { useAction, useApi } from '../../console/client/lib/data.ts';
import { plural, visibleText } from '../../console/client/lib/format.ts';
import {
  isLoad,
  type JobDetail,
  jobHref,
  jobPath,
  type LoadJob,
  pauseOf,
} from '../../console/client/lib/jobs.ts';
import type { RecordCheck } from '../../console/client/part.ts';
import { Button } from '../../console/client/ui/controls.tsx';
import { Pager } from '../../console/client/ui/list.tsx';
import {
  Empty,
  Loaded,
  Page,
  Problems,
  Section,
  StatusBadge,
  VisibleText,
} from '../../console/client/ui/page.tsx';
import type { RejectPage } from '../rejects/api.ts';
import { Causes } from './causes.tsx';
import { type Edited, type Edits, fileOf, Row } from './refused-row.tsx';

/** Page on which a person corrects refused records and sends them as a new file. */
export function Refused(): VNode {
  const { job: id = '' } = useRoute().params;
  const query = useQuery();
  const job = useApi<JobDetail>(jobPath(id), pauseOf);
  return (
    <Page
      title="Refused records"
      parent={{ title: visibleText(job.data?.filename ?? 'Job'), href: jobHref(id) }}
      aside={job.data === undefined ? null : <StatusBadge status={job.data.status} />}
    >
      <Loaded of={job}>
        {(data) =>
          isLoad(data) && data.rejects.count > 0 ? (
            <Records query={query} job={data} onChange={job.reload} />
          ) : (
            none
          )
        }
      </Loaded>
    </Page>
  );
}

const none = <Empty title="No record was refused" />;

function Records({ query, job, onChange }: RefusedProps): VNode {
  const cause = query.get('cause');
  return (
    <>
      <Causes
        job={job}
        title="Why they were refused"
        aside={<Download job={job} />}
        chosen={cause}
        hrefOf={(id) => query.href({ cause: id === cause ? undefined : id, cursor: undefined })}
      />
      <Grid query={query} job={job} onChange={onChange} />
    </>
  );
}

function Download({ job }: Pick<RefusedProps, 'job'>): VNode {
  const format = ['csv', 'xlsx'].includes(job.read_as?.format ?? 'csv') ? 'csv' : 'ndjson';
  const href = apiHref(withQuery(`${jobPath(job.job_id)}/rejects`, { format }));
  return (
    <a class="button button-quiet" href={href} download>
      Download all as {format.toUpperCase()}
    </a>
  );
}

interface RefusedProps {
  readonly query: Query;
  readonly job: LoadJob;
  readonly onChange: () => void;
}

const noEdits: Edits = new Map();

interface Checked {
  /** For each row, the reason why a load would refuse the edited record. */
  readonly problems: ReadonlyMap<number, string>;
  readonly refused: number;
}

const [checkPath] = parts.flatMap((part) => part.checkPath ?? []);

/** Any change to the edits discards the result of the last check. */
function useEdits({ job, onChange }: Omit<RefusedProps, 'query'>, columns: readonly string[] | null) {
  const [edits, setEdits] = useState<Edits>(noEdits);
  const [checked, setChecked] = useState<Checked | null>(null);
  const [sent, setSent] = useState<{ jobId: string; rows: ReadonlySet<number> } | null>(null);
  const change = (next: Edits) => {
    setEdits(next);
    setChecked(null);
  };
  const sendTo = <A,>(path: string): Promise<A> => {
    const [type, end] = columns === null ? ['application/x-ndjson', 'ndjson'] : ['text/csv', 'csv'];
    const filename = `corrected ${job.filename.replace(/\.[^.]*$/, '')}.${end}`;
    const dialect = columns === null ? {} : { delimiter: ',', quote: '"', header: '1' };
    const query = { ...dialect, filename, encoding: 'utf-8' };
    const body = new Blob([fileOf(job.job_id, [...edits.values()], columns)]);
    return api(withQuery(path, query), { method: 'POST', body, headers: { 'content-type': type } });
  };
  const check = useAction(async () => {
    const edited = [...edits.values()];
    const { problem, rejects } = await sendTo<RecordCheck>(checkPath ?? '');
    if (problem !== null) throw new Error(problem.message);
    const problems = rejects.items.flatMap(({ row, message }): [number, string][] => {
      const reject = edited[row - 1]?.reject;
      return reject === undefined ? [] : [[reject.row, message]];
    });
    setChecked({ problems: new Map(problems), refused: rejects.count });
  });
  const send = useAction(async () => {
    const { job_id: jobId } = await sendTo<{ readonly job_id: string }>('/v1/imports');
    setSent({ jobId, rows: new Set([...(sent?.rows ?? []), ...edits.keys()]) });
    change(noEdits);
    onChange();
  });
  return {
    edits,
    checked,
    sent,
    check,
    send,
    discard: () => change(noEdits),
    set: (row: number, edited: Edited | null) => {
      const others = [...edits].filter(([each]) => each !== row);
      change(new Map(edited === null ? others : [...others, [row, edited]]));
    },
  };
}

const rowsOnPage = 50;

function Grid({ query, job, onChange }: RefusedProps): VNode {
  const cause = query.get('cause');
  const url = jobPath(job.job_id);
  const path = withQuery(`${url}/rejects`, { limit: rowsOnPage, cause, cursor: query.get('cursor') });
  const page = useApi<RejectPage>(path, undefined, `${job.counts.rejected}`);
  const { data: shown = [], metadata } = page.data ?? {};
  const columns = metadata?.columns ?? null;
  const { edits, checked, sent, check, send, ...actions } = useEdits({ job, onChange }, columns);
  const place = useShown(cause);
  const total = metadata?.total_count ?? 0;
  return (
    <div ref={place} tabIndex={-1}>
      <Section title={cause === '' ? 'Records' : 'Records of this cause'} flush>
        <Loaded of={page} rows={10}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="No records on this page" />
            ) : (
              <Cells columns={columns}>
                {data.map((reject) => (
                  <Row
                    key={reject.row}
                    reject={reject}
                    columns={columns}
                    edit={edits.get(reject.row)?.edit}
                    isSent={sent?.rows.has(reject.row) === true}
                    problem={checked?.problems.get(reject.row) ?? null}
                    onChange={(edit) => actions.set(reject.row, edit === null ? null : { reject, edit })}
                  />
                ))}
              </Cells>
            )
          }
        </Loaded>
        {sent === null ? null : (
          <p class="hint" role="status">
            {plural(sent.rows.size, 'record')} sent: <a href={jobHref(sent.jobId)}>the job that loads them</a>
          </p>
        )}
        {edits.size === 0 && send.error === null ? null : (
          <div class="row foot-bar">
            <Problems error={check.error ?? send.error} />
            <p class="push" role="status">
              {plural(edits.size, 'record')} edited here, not sent yet
              {checked === null ? null : `; ${plural(checked.refused, 'record')} would still be refused`}
            </p>
            <Button look="quiet" onClick={actions.discard}>
              Discard
            </Button>
            {checkPath === undefined ? null : (
              <Button
                look="quiet"
                scopes="import"
                disabled={check.isRunning || edits.size === 0}
                onClick={() => void check.run()}
              >
                Check
              </Button>
            )}
            <Button
              look="main"
              scopes="import"
              disabled={send.isRunning || edits.size === 0}
              onClick={() => void send.run()}
            >
              Send {plural(edits.size, 'record')}
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

/**
 * When another cause is selected, scrolls to its records, because they may be far down the page.
 */
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

interface CellsProps {
  readonly columns: readonly string[] | null;
  readonly children: ComponentChildren;
}

function Cells({ columns, children }: CellsProps): VNode {
  return (
    <div class="table-scroll">
      <table class="table refused-grid">
        <caption class="visually-hidden">Refused records; each can be corrected</caption>
        <thead>
          <tr>
            <th scope="col" class="num">
              Row
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
