import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, apiPage, mayUse, withQuery } from '../../lib/api.ts';
import { plural, visibleText } from '../../lib/format.ts';
import { screenHref } from '../../lib/place.ts';
import { useData } from '../../lib/use-data.ts';
import { useQuery } from '../../lib/use-query.ts';
import { Badge } from '../../ui/badge.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { FilterChoices, FilterSelect, FilterText } from '../../ui/field.tsx';
import { Page } from '../../ui/page.tsx';
import { Pager } from '../../ui/pager.tsx';
import { Empty, Loading, Problems } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { answerOf, type Delivery, path, tones } from './delivery-record.ts';
import { Subscriptions } from './subscriptions.tsx';

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
  const filter = (name: string) => (value: string) =>
    query.set({ [name]: value, cursor: undefined, row: undefined });
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
        <FilterChoices
          label="State"
          value={query.get('state')}
          options={['pending', 'delivered', 'dead'].map((each) => [each, each] as const)}
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
              keyOf={({ delivery_id }) => delivery_id}
              hrefOf={({ delivery_id }) => screenHref(`/deliveries/${delivery_id}`)}
              selected={query.get('row')}
              onSelect={(row) => query.set({ row }, { replace: true })}
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
