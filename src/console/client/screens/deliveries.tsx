import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import { api, apiPage, mayUse, withQuery } from '../lib/api.ts';
import { formatMs, plural, visibleText } from '../lib/format.ts';
import { screenHref } from '../lib/place.ts';
import { useAction, useData } from '../lib/use-data.ts';
import { useQuery } from '../lib/use-query.ts';
import { Badge, type Tone } from '../ui/badge.tsx';
import { CopyButton } from '../ui/copy.tsx';
import { Confirm } from '../ui/dialog.tsx';
import { FilterSelect, FilterText } from '../ui/field.tsx';
import { Facts, Page, Section } from '../ui/page.tsx';
import { Pager } from '../ui/pager.tsx';
import { Empty, Loading, Problems } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';

interface Delivery {
  readonly delivery_id: number;
  readonly event_type: string;
  readonly job_id: string | null;
  readonly channel: string;
  readonly target: string;
  readonly state: string;
  readonly attempts: number;
  readonly next_at: string | null;
  readonly created_at: string;
  readonly last_attempt_at: string | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly delivered_at: string | null;
}

interface Try {
  readonly attempt: number;
  readonly begun_at: string;
  readonly took_ms: number;
  readonly status: number | null;
  readonly error: string | null;
}

interface DeliveryDetail extends Delivery {
  readonly tries: readonly Try[];
  readonly body: string;
}

interface Subscription {
  readonly id: number;
  readonly channel: string;
  readonly target: string;
  readonly on: readonly string[];
  readonly types: readonly string[];
  readonly disabled_reason: string | null;
}

const path = '/v1/deliveries';
const tones: Readonly<Record<string, Tone>> = { pending: 'waiting', delivered: 'good', dead: 'bad' };

function answerOf({
  status,
  error,
}: {
  readonly status: number | null;
  readonly error: string | null;
}): string {
  if (error !== null) return visibleText(error);
  return status === null ? '–' : `HTTP ${status}`;
}

const columns: readonly Column<Delivery>[] = [
  { id: 'target', title: 'To', cell: ({ target }) => <span class="file-name">{visibleText(target)}</span> },
  { id: 'event', title: 'Event', isMinor: true, cell: ({ event_type }) => event_type },
  {
    id: 'state',
    title: 'State',
    cell: ({ state }) => <Badge tone={tones[state] ?? 'waiting'}>{state}</Badge>,
  },
  {
    id: 'answer',
    title: 'Last answer',
    cell: ({ last_status, last_error }) => (
      <span class="break">{answerOf({ status: last_status, error: last_error })}</span>
    ),
  },
  { id: 'attempts', title: 'Tries', isNumber: true, cell: ({ attempts }) => attempts },
  {
    id: 'at',
    title: 'Last try',
    isNumber: true,
    isMinor: true,
    cell: ({ last_attempt_at }) => <Time at={last_attempt_at} />,
  },
];

/** What was sent to whom, and what is still to be sent. */
export function Deliveries(): VNode {
  const query = useQuery();
  const [isAsking, setAsking] = useState(false);
  const asked = withQuery(path, {
    state: query.get('state'),
    channel: query.get('channel'),
    since: query.get('since'),
    cursor: query.get('cursor'),
  });
  const list = useData(asked, (signal) => apiPage<Delivery>(asked, { signal }), { everyMs: 3_000 });
  const filter = (name: string) => (value: string) => query.set({ [name]: value, cursor: undefined });
  const isFiltered = ['state', 'channel', 'since'].some((name) => query.get(name) !== '');
  return (
    <Page
      title="Deliveries"
      actions={
        <button type="button" class="button" disabled={!mayUse('import')} onClick={() => setAsking(true)}>
          Replay what was given up …
        </button>
      }
    >
      {isAsking ? (
        <Replay since={query.get('since')} onClose={() => setAsking(false)} onDone={list.reload} />
      ) : null}
      <Subscriptions onSent={list.reload} />
      <search class="filters">
        <FilterSelect
          label="State"
          value={query.get('state')}
          options={[['', 'All'], ...['pending', 'delivered', 'dead'].map((each) => [each, each] as const)]}
          onChange={filter('state')}
        />
        <FilterSelect
          label="By"
          value={query.get('channel')}
          options={[
            ['', 'All'],
            ['webhook', 'Webhook'],
            ['email', 'Mail'],
          ]}
          onChange={filter('channel')}
        />
        <FilterText label="Since" type="date" value={query.get('since')} onChange={filter('since')} />
      </search>
      <Problems error={list.error} onRetry={list.reload} />
      <div class="panel">
        {list.data === undefined ? (
          <Loading />
        ) : list.data.items.length === 0 ? (
          <Empty title={isFiltered ? 'No delivery matches' : 'Nothing has been sent yet'} />
        ) : (
          <>
            <Table
              caption="Deliveries, newest first"
              columns={columns}
              rows={list.data.items}
              keyOf={({ delivery_id }) => String(delivery_id)}
              hrefOf={({ delivery_id }) => screenHref(`/deliveries/${delivery_id}`)}
            />
            <Pager page={list.data} noun={list.data.items.length === 1 ? 'delivery' : 'deliveries'} />
          </>
        )}
      </div>
    </Page>
  );
}

/** Without a day: those of the last seven. */
function Replay({
  since,
  onClose,
  onDone,
}: {
  readonly since: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}): VNode {
  const [from] = useState(since === '' ? new Date(Date.now() - 7 * 86_400_000).toISOString() : since);
  return (
    <Confirm
      title="Replay what was given up"
      count={async (signal) => {
        const counted = withQuery(path, { state: 'dead', since: from, limit: 1 });
        const { metadata } = await api<{ readonly metadata: { readonly total_count: number } }>(counted, {
          signal,
        });
        return metadata.total_count;
      }}
      sentence={(count) =>
        `${plural(count, 'delivery', 'deliveries')} since ${from.slice(0, 10)} ${count === 1 ? 'was' : 'were'} given up. Each is sent again under the id that it had.`
      }
      verb={(count) => `Replay ${plural(count, 'delivery', 'deliveries')}`}
      act={async () => {
        await api(`${path}/replay`, { method: 'POST', body: { failed_since: from } });
        onDone();
      }}
      onClose={onClose}
    />
  );
}

function Subscriptions({ onSent }: { readonly onSent: () => void }): VNode {
  const { data, error, reload } = useData('/v1/subscriptions', (signal) =>
    api<readonly Subscription[]>('/v1/subscriptions', { signal }),
  );
  const all: readonly Column<Subscription>[] = [
    {
      id: 'target',
      title: 'Who',
      cell: ({ target }) => <span class="file-name">{visibleText(target)}</span>,
    },
    {
      id: 'on',
      title: 'Of',
      isMinor: true,
      cell: ({ on, types }) => `${types.join(', ')}: ${on.join(', ').replaceAll('_', ' ')}`,
    },
    {
      id: 'state',
      title: 'State',
      cell: ({ disabled_reason }) =>
        disabled_reason === null ? (
          <Badge tone="good">live</Badge>
        ) : (
          <span class="two-lines">
            <span>
              <Badge tone="bad">disabled</Badge>
            </span>
            <span class="faint break">{visibleText(disabled_reason)}</span>
          </span>
        ),
    },
    { id: 'do', title: 'Do', cell: (each) => <Ping of={each} onSent={onSent} /> },
  ];
  return (
    <Section title="Who is notified" flush>
      <Problems error={error} onRetry={reload} />
      {data === undefined ? (
        <Loading rows={2} />
      ) : data.length === 0 ? (
        <Empty title="Nobody is notified of the ends of jobs">
          <code>sluice notifications add --url https://example.com/hooks</code>
        </Empty>
      ) : (
        <Table caption="Subscriptions" columns={all} rows={data} keyOf={({ id }) => String(id)} />
      )}
    </Section>
  );
}

interface Tested {
  readonly delivered: boolean;
  readonly status: number | null;
  readonly error: string | null;
  readonly took_ms: number;
}

function Ping({ of, onSent }: { readonly of: Subscription; readonly onSent: () => void }): VNode {
  const [result, setResult] = useState<Tested | null>(null);
  const ping = useAction(async () => {
    setResult(await api<Tested>(`/v1/subscriptions/${of.id}/test`, { method: 'POST' }));
    onSent();
  });
  return (
    <div class="row">
      <button
        type="button"
        class="button"
        disabled={of.disabled_reason !== null || !mayUse('import') || ping.isRunning}
        onClick={() => void ping.run()}
      >
        Send a ping
      </button>
      <span aria-live="polite" class={result?.delivered === false ? 'bad break' : 'muted'}>
        {result === null
          ? ''
          : result.delivered
            ? `arrived in ${formatMs(result.took_ms)}`
            : answerOf(result)}
      </span>
      <Problems error={ping.error} />
    </div>
  );
}

/** One delivery: what each attempt was answered, and what is sent. */
export function Delivered(): VNode {
  const { delivery = '' } = useRoute().params;
  const own = `${path}/${encodeURIComponent(delivery)}`;
  const { data, error, reload } = useData(own, (signal) => api<DeliveryDetail>(own, { signal }), {
    everyMs: 3_000,
  });
  const replay = useAction(async () => {
    await api(`${own}/replay`, { method: 'POST' });
    reload();
  });
  return (
    <Page
      title={`Delivery ${delivery}`}
      parent={{ title: 'Deliveries', href: screenHref('/deliveries') }}
      aside={data === undefined ? null : <Badge tone={tones[data.state] ?? 'waiting'}>{data.state}</Badge>}
      actions={
        <button
          type="button"
          class="button"
          disabled={!mayUse('import') || replay.isRunning}
          onClick={() => void replay.run()}
        >
          Send it once more
        </button>
      }
    >
      <Problems error={error ?? replay.error} onRetry={reload} />
      {data === undefined ? error === null ? <Loading /> : null : <Whole of={data} />}
    </Page>
  );
}

function Whole({ of }: { readonly of: DeliveryDetail }): VNode {
  return (
    <div class="columns">
      <div class="stack">
        <Section title="About it">
          <Facts
            of={[
              [
                'To',
                <span key="to" class="break">
                  {visibleText(of.target)}
                </span>,
              ],
              ['Event', of.event_type],
              [
                'Job',
                of.job_id === null ? null : (
                  <a key="job" href={screenHref(`/jobs/${of.job_id}`)}>
                    its job
                  </a>
                ),
              ],
              ['Written', <Time key="at" at={of.created_at} />],
              ['Delivered', <Time key="end" at={of.delivered_at} />],
              ['Next try', of.next_at === null ? null : <Time key="next" at={of.next_at} ago />],
            ]}
          />
        </Section>
        <Section title="Attempts" flush>
          {of.tries.length === 0 ? (
            <Empty title="It has not been tried yet" />
          ) : (
            <Table
              caption="Attempts, the latest first"
              columns={tryColumns}
              rows={of.tries}
              keyOf={({ attempt }) => String(attempt)}
            />
          )}
        </Section>
      </div>
      <Section title="What is sent" aside={<CopyButton text={of.body} />}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard too */}
        <pre class="code" tabIndex={0}>
          {indented(of.body)}
        </pre>
      </Section>
    </div>
  );
}

const tryColumns: readonly Column<Try>[] = [
  { id: 'attempt', title: 'Try', cell: ({ attempt }) => attempt },
  { id: 'at', title: 'At', cell: ({ begun_at }) => <Time at={begun_at} /> },
  { id: 'answer', title: 'Answer', cell: (each) => <span class="break">{answerOf(each)}</span> },
  { id: 'took', title: 'Took', isNumber: true, isMinor: true, cell: ({ took_ms }) => formatMs(took_ms) },
];

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
