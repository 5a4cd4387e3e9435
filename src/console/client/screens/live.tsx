import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { screenHref, useQuery } from '../lib/api.ts';
import { formatClock, formatCount, formatMs, shorten, visibleText } from '../lib/format.ts';
import { isLoad, type JobsEvent, type LiveJob } from '../lib/jobs.ts';
import { type LiveEvent, live, useLive } from '../lib/live.ts';
import { Button, CopyButton, FilterText, type Options, SelectField } from '../ui/controls.tsx';
import { Icon } from '../ui/drawings.tsx';
import { Badge, Facts, JobLink, Page, Section, Time } from '../ui/page.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { type Entity, profileHref } from './profiles.tsx';

interface LiveRecord {
  readonly at: string;
  readonly route: string;
  readonly request_id: string;
  readonly key_id: string;
  readonly ms: number;
  readonly accepted: boolean;
  readonly error_code: string | null;
  readonly message: string | null;
  readonly body: string;
}

interface RecordsEvent extends LiveEvent {
  /** Host and process id of the server whose records they are. */
  readonly server: string;
  readonly arrived: number;
  readonly refused: number;
  readonly shown: number;
  readonly records: readonly LiveRecord[];
}

/** A line of the table: a record, or the end of a load. */
interface Line {
  readonly key: string;
  readonly at: string;
  readonly route: string;
  readonly what: string;
  readonly ms: number;
  readonly accepted: boolean;
  readonly reason: string;
  readonly userId?: string | undefined;
  readonly companyId?: string | undefined;
  readonly keyId?: string;
  readonly requestId?: string;
  readonly jobId?: string;
  readonly body?: string;
}

let serial = 0;

function lineOf({ body, error_code, message, key_id, request_id, ...record }: LiveRecord): Line {
  const fields = parse(body);
  const text = (name: string): string | undefined => {
    const value = fields[name];
    return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
  };
  const [userId, companyId, event] = [text('user_id'), text('company_id'), text('event_name')];
  const who = userId ?? companyId ?? shorten(body, 80);
  return {
    ...record,
    key: `r${++serial}`,
    what: event === undefined ? who : `${event} · ${who}`,
    reason: error_code === null ? '' : `${error_code}: ${message}`,
    ...{ userId, companyId, keyId: key_id, requestId: request_id, body },
  };
}

/** Returns what tells a record from others: it has no id. */
function markOf({ at, requestId, body }: Line): string {
  return `${at} ${requestId} ${body}`;
}

/** A body that was cut, or is not JSON, has no fields to show; it is shown as it is. */
function parse(body: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(body));
  } catch {
    return {};
  }
}

/** Returns the line of a load that has ended; the records of files are not shown one by one. */
function linesOfJob(job: LiveJob): readonly Line[] {
  if (!isLoad(job) || job.end_time === null) return [];
  const { read = 0, rejected = 0 } = job.counts ?? {};
  return [
    {
      key: job.job_id,
      at: job.end_time,
      route: 'import',
      what: `${job.filename} · ${formatCount(read)} records, ${formatCount(rejected)} refused`,
      ms: Date.parse(job.end_time) - Date.parse(job.start_time),
      accepted: job.status === 'completed',
      reason: job.failure === null ? '' : `${job.failure.error_code}: ${job.failure.message}`,
      jobId: job.job_id,
    },
  ];
}

/** The number of lines that are kept; the table shows the matching ones. */
const keptLines = 200;

const columns: readonly Column<Line>[] = [
  ['At', ({ at }) => <span class="num">{formatClock(at)}</span>],
  ['By', ({ route }) => route, 'minor'],
  ['Record', ({ what }) => <span class="break">{visibleText(what)}</span>],
  [
    'Outcome',
    ({ accepted }) => <Badge tone={accepted ? 'good' : 'bad'}>{accepted ? 'stored' : 'refused'}</Badge>,
  ],
  ['Took', ({ ms }) => formatMs(ms), 'num minor'],
  ['Reason', ({ reason }) => <span class="break">{visibleText(reason)}</span>, 'minor'],
];

/** The lines as they arrive; those of a pause are held back until `resume`. */
function useLines() {
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [counts, setCounts] = useState({ arrived: 0, refused: 0, shown: 0, server: '' });
  const [isPaused, setPaused] = useState(false);
  const held = useRef<readonly Line[]>([]);
  const take = (found: readonly Line[]): void => {
    if (isPaused) held.current = [...found, ...held.current].slice(0, keptLines);
    else setLines((before) => [...found, ...before].slice(0, keptLines));
  };
  useLive<RecordsEvent>('records', ({ snapshot, records, ...rest }) => {
    setCounts(rest);
    // A stream that was opened again begins with records that are there already.
    const known = new Set(snapshot ? [...held.current, ...lines].map(markOf) : []);
    take(
      records
        .map(lineOf)
        .reverse()
        .filter((line) => !known.has(markOf(line))),
    );
  });
  useLive<JobsEvent>('jobs', ({ snapshot, jobs }) => {
    if (!snapshot) take(jobs.flatMap(linesOfJob));
  });
  const resume = (): void => {
    setLines([...held.current, ...lines].slice(0, keptLines));
    held.current = [];
    setPaused(false);
  };
  return { lines, counts, isPaused, heldBack: held.current.length, pause: () => setPaused(true), resume };
}

const optionsOf = (names: readonly string[]): Options => ['', ...names].map((name) => [name, name || 'All']);
const routes = optionsOf(['identify', 'company', 'track', 'batch', 'import']);
const outcomes = optionsOf(['stored', 'refused']);

/** Every record as it arrives, refused ones included. */
export function Live(): VNode {
  const query = useQuery();
  const { lines, counts, isPaused, heldBack, pause, resume } = useLines();
  const [route, outcome, text] = [query.get('route'), query.get('outcome'), query.get('q').toLowerCase()];
  const shown = lines.filter(
    (line) =>
      (route === '' || line.route === route) &&
      (outcome === '' || line.accepted === (outcome === 'stored')) &&
      [line.what, line.reason, line.body, line.keyId].join(' ').toLowerCase().includes(text),
  );
  const selected = lines.find(({ key }) => key === query.get('row'));
  return (
    <Page
      title="Live"
      aside={
        <Badge tone={live.value.isOpen ? 'good' : 'warn'}>
          {live.value.isOpen ? 'connected' : 'connecting'}
        </Badge>
      }
      actions={
        <Button onClick={isPaused ? resume : pause}>
          <Icon name={isPaused ? 'play' : 'pause'} />
          {isPaused ? 'Resume' : 'Pause'}
        </Button>
      }
    >
      <search class="row filters">
        <SelectField label="By" options={routes} {...query.filter('route')} />
        <SelectField label="Outcome" options={outcomes} {...query.filter('outcome')} />
        <FilterText label="Contains" placeholder="id, event, reason" {...query.filter('q')} />
      </search>
      <p class="muted num">
        <strong>
          {formatCount(counts.shown)} shown / {formatCount(counts.arrived)} arrived
        </strong>
        , {formatCount(counts.refused)} of them refused, since someone began to watch
        {isPaused ? `; paused, ${formatCount(heldBack)} held back` : ''}. Shows single records and batches
        that the server {counts.server} receives, and loads when they end; the latest {keptLines}. With
        several servers, each shows its own; <a href={screenHref('/')}>Overview</a> counts all.
      </p>
      <div class="panel">
        <Table
          caption="Records, latest first"
          columns={columns}
          rows={shown}
          keyOf={({ key }) => key}
          onOpen={({ key }) => query.set({ row: key })}
          isSelectable
          empty={lines.length === 0 ? 'Nothing has arrived yet' : 'Nothing matches'}
        />
      </div>
      {selected === undefined ? null : <RecordDetail line={selected} />}
    </Page>
  );
}

/** Shows a record as sent, with links to its user or company, or to its job. */
function RecordDetail({ line }: { readonly line: Line }): VNode {
  const { at, route, ms, reason, userId, companyId, jobId, keyId, requestId, body } = line;
  return (
    <Section title="Record" aside={body === undefined ? null : <CopyButton text={body} />}>
      <Facts
        of={[
          ['At', <Time key="at" at={at} />],
          ['By', route],
          ['Took', formatMs(ms)],
          ['Refused because', reason === '' ? null : visibleText(reason)],
          ['User', profileLink('users', userId)],
          ['Company', profileLink('companies', companyId)],
          ['Job', jobId === undefined ? null : <JobLink id={jobId} />],
          ['API key', keyId],
          ['Request', requestId],
        ]}
      />
      {body === undefined ? null : <pre class="code code-wrapped">{visibleText(body)}</pre>}
    </Section>
  );
}

function profileLink(entity: Entity, id: string | undefined): VNode | null {
  return id === undefined ? null : <a href={profileHref(entity, id)}>{visibleText(id)}</a>;
}
