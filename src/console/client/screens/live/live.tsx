import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { screenHref, useQuery } from '../../lib/address.ts';
import { api } from '../../lib/api.ts';
import { formatClock, formatCount, formatMs, visibleText } from '../../lib/format.ts';
import { live, useLive } from '../../lib/live.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button, CopyButton } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Field, FilterSelect, FilterText, type Options } from '../../ui/field.tsx';
import { Icon } from '../../ui/icons.tsx';
import { Facts, Page, Section } from '../../ui/page.tsx';
import { Empty } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { JobLink, Time } from '../../ui/text.tsx';
import { type Entity, profileHref } from '../profiles/profile-record.ts';
import { type JobsEvent, type Line, lineOf, lineOfJob, type RecordsEvent } from './live-line.ts';

/** The number of lines that are kept; the table shows the matching ones. */
const keptLines = 200;

const columns: readonly Column<Line>[] = [
  { title: 'At', cell: ({ at }) => <span class="num">{formatClock(at)}</span> },
  { title: 'By', is: 'minor', cell: ({ route }) => route },
  { title: 'Record', cell: ({ what }) => <span class="live-what">{visibleText(what)}</span> },
  {
    title: 'Outcome',
    cell: ({ accepted }) => <Badge tone={accepted ? 'good' : 'bad'}>{accepted ? 'stored' : 'refused'}</Badge>,
  },
  { title: 'Took', is: 'num minor', cell: ({ ms }) => (ms === null ? '' : formatMs(ms)) },
  {
    title: 'Reason',
    is: 'minor',
    cell: ({ reason }) => <span class="live-what">{visibleText(reason)}</span>,
  },
];

interface Counts {
  readonly arrived: number;
  readonly refused: number;
  readonly shown: number;
}

const none: Counts = { arrived: 0, refused: 0, shown: 0 };

/** The lines as they arrive; those of a pause are held back until `resume`. */
function useLines() {
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [counts, setCounts] = useState(none);
  const [server, setServer] = useState('');
  const [isPaused, setPaused] = useState(false);
  const held = useRef<Line[]>([]);
  const take = (found: readonly Line[]): void => {
    if (isPaused) held.current = [...found, ...held.current].slice(0, keptLines);
    else setLines((before) => [...found, ...before].slice(0, keptLines));
  };
  useLive<RecordsEvent>('records', ({ snapshot, records, ...rest }) => {
    setServer(rest.server);
    setCounts({ arrived: rest.arrived, refused: rest.refused, shown: rest.shown });
    const found = records.map(lineOf).reverse();
    if (snapshot) setLines(found);
    else take(found);
  });
  useLive<JobsEvent>('jobs', ({ snapshot, jobs }) => {
    if (!snapshot) take(jobs.flatMap((job) => lineOfJob(job) ?? []));
  });
  const resume = (): void => {
    setLines([...held.current, ...lines].slice(0, keptLines));
    held.current = [];
    setPaused(false);
  };
  return {
    lines,
    counts,
    server,
    isPaused,
    heldBack: held.current.length,
    pause: () => setPaused(true),
    resume,
  };
}

/** Every record as it arrives, refused ones included. */
export function Live(): VNode {
  const query = useQuery();
  const { lines, counts, server, isPaused, heldBack, pause, resume } = useLines();
  const [isSending, setSending] = useState(false);
  const wanted = {
    route: query.get('route'),
    outcome: query.get('outcome'),
    text: query.get('q').toLowerCase(),
  };
  const shown = lines.filter((line) => matches(line, wanted));
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
        <>
          <Button onClick={isPaused ? resume : pause}>
            <Icon name={isPaused ? 'play' : 'pause'} />
            {isPaused ? 'Resume' : 'Pause'}
          </Button>
          <Button needs="ingest" onClick={() => setSending(true)}>
            Send a test record
          </Button>
        </>
      }
    >
      <Filters />
      <p class="live-counts num">
        <strong>
          {formatCount(counts.shown)} shown / {formatCount(counts.arrived)} arrived
        </strong>
        , {formatCount(counts.refused)} of them refused, since somebody began to watch
        {isPaused ? `; paused, ${formatCount(heldBack)} held back` : ''}. Shows single records and batches
        that the server {server} receives, and loads when they end; the latest {keptLines}. With several
        servers, each shows its own; <a href={screenHref('/')}>Pulse</a> counts all.
      </p>
      <div class="panel">
        <Table
          caption="Records, latest first"
          columns={columns}
          rows={shown}
          keyOf={({ key }) => key}
          onOpen={({ key }) => query.set({ row: key }, { replace: true })}
          isSelectable
          empty={<Empty title={lines.length === 0 ? 'Nothing has arrived yet' : 'Nothing matches'} />}
        />
      </div>
      {selected === undefined ? null : <RecordDetail line={selected} />}
      {isSending ? <TestRecord onClose={() => setSending(false)} /> : null}
    </Page>
  );
}

interface Wanted {
  readonly route: string;
  readonly outcome: string;
  readonly text: string;
}

function matches(line: Line, { route, outcome, text }: Wanted): boolean {
  if (route !== '' && line.route !== route) return false;
  if (outcome !== '' && line.accepted !== (outcome === 'stored')) return false;
  return text === '' || `${line.what} ${line.reason} ${line.body} ${line.keyId}`.toLowerCase().includes(text);
}

const optionsOf = (names: readonly string[]): Options => [
  ['', 'All'],
  ...names.map((name) => [name, name] as const),
];
const routes = optionsOf(['identify', 'company', 'track', 'batch', 'import']);
const outcomes = optionsOf(['stored', 'refused']);

function Filters(): VNode {
  const query = useQuery();
  const of = (name: string) => ({
    value: query.get(name),
    onChange: (value: string) => query.set({ [name]: value }, { replace: true }),
  });
  return (
    <search class="filters">
      <FilterSelect label="By" options={routes} {...of('route')} />
      <FilterSelect label="Outcome" options={outcomes} {...of('outcome')} />
      <FilterText label="Contains" placeholder="id, event, reason" {...of('q')} />
    </search>
  );
}

/** Shows a record as sent, with links to its user or company, or to its job. */
function RecordDetail({ line }: { readonly line: Line }): VNode {
  const { at, route, ms, reason, userId, companyId, jobId, keyId, requestId, body } = line;
  return (
    <Section title="Record" aside={body === '' ? undefined : <CopyButton text={body} />}>
      <Facts
        of={[
          ['At', <Time key="at" at={at} />],
          ['By', route],
          ['Took', ms === null ? null : formatMs(ms)],
          ['Refused because', reason === '' ? null : visibleText(reason)],
          ['User', userId === null ? null : profileLink('users', userId)],
          ['Company', companyId === null ? null : profileLink('companies', companyId)],
          ['Job', jobId === null ? null : <JobLink id={jobId} />],
          ['Key', keyId],
          ['Request', requestId],
        ]}
      />
      {body === '' ? null : (
        <section class="live-body" aria-label="As it was sent">
          <pre class="code">{visibleText(body)}</pre>
        </section>
      )}
    </Section>
  );
}

function profileLink(entity: Entity, id: string): VNode {
  return <a href={profileHref(entity, id)}>{visibleText(id)}</a>;
}

/** Sends an event of a user, which is stored like any other. */
function TestRecord({ onClose }: { readonly onClose: () => void }): VNode {
  const [userId, setUserId] = useState('console-test');
  const [event, setEvent] = useState('console_test');
  const body = { user_id: userId, event_name: event, metadata: { sent_from: 'console' } };
  return (
    <FormDialog
      title="Send a test record"
      verb="Send and store it"
      isComplete
      act={() => api('/v1/track', { method: 'POST', body })}
      onClose={onClose}
    >
      <p class="muted">It is an event like any other, and stays until its user is deleted.</p>
      <Field label="User">
        <input
          value={userId}
          onInput={({ currentTarget }) => setUserId(currentTarget.value)}
          autocomplete="off"
        />
      </Field>
      <Field label="Event">
        <input
          value={event}
          onInput={({ currentTarget }) => setEvent(currentTarget.value)}
          autocomplete="off"
        />
      </Field>
    </FormDialog>
  );
}
