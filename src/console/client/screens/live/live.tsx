import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { mayUse } from '../../lib/api.ts';
import { formatClock, formatCount, formatMs, visibleText } from '../../lib/format.ts';
import { live, useLive } from '../../lib/live.ts';
import { screenHref } from '../../lib/place.ts';
import { useQuery } from '../../lib/use-query.ts';
import { Badge } from '../../ui/badge.tsx';
import { FilterSelect, FilterText } from '../../ui/field.tsx';
import { Icon } from '../../ui/icons.tsx';
import { Page } from '../../ui/page.tsx';
import { Empty } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { type JobsEvent, type Line, lineOf, lineOfJob, type RecordsEvent } from './live-record.ts';
import { RecordDetail } from './record-detail.tsx';
import { TestRecord } from './test-record.tsx';

/** Lines that are kept; the table shows those of them that match. */
const keptLines = 200;

const columns: readonly Column<Line>[] = [
  { id: 'at', title: 'At', cell: ({ at }) => <span class="num">{formatClock(at)}</span> },
  { id: 'route', title: 'By', isMinor: true, cell: ({ route }) => route },
  { id: 'what', title: 'Record', cell: ({ what }) => <span class="live-what">{visibleText(what)}</span> },
  {
    id: 'outcome',
    title: 'Outcome',
    cell: ({ accepted }) => <Badge tone={accepted ? 'good' : 'bad'}>{accepted ? 'stored' : 'refused'}</Badge>,
  },
  {
    id: 'ms',
    title: 'Took',
    isNumber: true,
    isMinor: true,
    cell: ({ ms }) => (ms === null ? '' : formatMs(ms)),
  },
  {
    id: 'reason',
    title: 'Reason',
    isMinor: true,
    cell: ({ reason }) => <span class="live-what">{visibleText(reason)}</span>,
  },
];

interface Counts {
  readonly arrived: number;
  readonly refused: number;
  readonly shown: number;
}

const none: Counts = { arrived: 0, refused: 0, shown: 0 };

/** Every record as it arrives, those that are refused among them. */
export function Live(): VNode {
  const query = useQuery();
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [counts, setCounts] = useState(none);
  const [server, setServer] = useState('');
  const [isPaused, setPaused] = useState(false);
  const [isSending, setSending] = useState(false);
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
          <button type="button" class="button" onClick={() => (isPaused ? resume() : setPaused(true))}>
            <Icon name={isPaused ? 'play' : 'pause'} />
            {isPaused ? 'Resume' : 'Pause'}
          </button>
          <button
            type="button"
            class="button"
            disabled={!mayUse('ingest')}
            title={mayUse('ingest') ? undefined : 'The key lacks the scope ingest'}
            onClick={() => setSending(true)}
          >
            Send a test record
          </button>
        </>
      }
    >
      <Filters />
      <p class="live-counts num">
        <strong>
          {formatCount(counts.shown)} shown / {formatCount(counts.arrived)} arrived
        </strong>
        , {formatCount(counts.refused)} of them refused, since somebody began to watch
        {isPaused ? `; paused, ${formatCount(held.current.length)} held back` : ''}. Shows single records and
        batches that the server {server} takes, and loads when they end; the latest {keptLines}. With several
        servers, each shows its own; <a href={screenHref('/')}>Pulse</a> counts all.
      </p>
      <div class="panel">
        {shown.length === 0 ? (
          <Empty title={lines.length === 0 ? 'Nothing has arrived yet' : 'Nothing matches'} />
        ) : (
          <Table
            caption="Records, latest first"
            columns={columns}
            rows={shown}
            keyOf={({ key }) => key}
            onOpen={({ key }) => query.set({ row: key }, { replace: true })}
            selected={query.get('row')}
            onSelect={(row) => query.set({ row }, { replace: true })}
          />
        )}
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

function Filters(): VNode {
  const query = useQuery();
  const filter = (name: string) => (value: string) => query.set({ [name]: value }, { replace: true });
  const options = (names: readonly string[]) => [
    ['', 'All'] as const,
    ...names.map((name) => [name, name] as const),
  ];
  return (
    <search class="filters">
      <FilterSelect
        label="By"
        value={query.get('route')}
        options={options(['identify', 'company', 'track', 'batch', 'import'])}
        onChange={filter('route')}
      />
      <FilterSelect
        label="Outcome"
        value={query.get('outcome')}
        options={options(['stored', 'refused'])}
        onChange={filter('outcome')}
      />
      <FilterText
        label="Contains"
        value={query.get('q')}
        placeholder="id, event, reason"
        onChange={filter('q')}
      />
    </search>
  );
}
