import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, mayUse, session, withQuery } from '../../lib/api.ts';
import { formatMs, plural, visibleText } from '../../lib/format.ts';
import { useAction, useData } from '../../lib/use-data.ts';
import { Badge } from '../../ui/badge.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty, Loading, Problems } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { answerOf } from './delivery-record.ts';
import { NewSubscription, Secret } from './new-subscription.tsx';

interface Subscription {
  readonly id: string;
  readonly channel: string;
  readonly target: string;
  readonly on: readonly string[];
  readonly types: readonly string[];
  readonly disabled_reason: string | null;
}

/** Who is told of the ends of jobs. */
export function Subscriptions({ onSent }: { readonly onSent: () => void }): VNode {
  const { data, error, reload } = useData('/v1/subscriptions', (signal) =>
    api<readonly Subscription[]>('/v1/subscriptions', { signal }),
  );
  const isAdmin = session.value?.is_admin === true;
  const [isAdding, setAdding] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const [leaving, setLeaving] = useState<Subscription | null>(null);
  const all: readonly Column<Subscription>[] = [
    {
      id: 'target',
      title: 'Recipient',
      cell: ({ target }) => <span class="file-name">{visibleText(target)}</span>,
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
    {
      id: 'on',
      title: 'Notified of',
      isMinor: true,
      cell: ({ on, types }) => `${types.join(', ')}: ${on.join(', ').replaceAll('_', ' ')}`,
    },
    { id: 'do', title: 'Action', cell: (each) => <Ping of={each} onSent={onSent} /> },
    ...(isAdmin
      ? [
          {
            id: 'remove',
            title: 'Remove',
            cell: (each: Subscription) => (
              <button type="button" class="button button-quiet" onClick={() => setLeaving(each)}>
                Remove …<span class="visually-hidden"> {each.target}</span>
              </button>
            ),
          },
        ]
      : []),
  ];
  return (
    <Section
      title="Who is notified"
      aside={
        <button
          type="button"
          class="button"
          disabled={!isAdmin}
          title={isAdmin ? undefined : 'For administrators: sign in with ADMIN_KEY'}
          onClick={() => setAdding(true)}
        >
          Notify somebody …
        </button>
      }
      flush
    >
      {isAdding ? (
        <NewSubscription
          onClose={() => setAdding(false)}
          onMade={(made) => {
            setSecret(made);
            reload();
          }}
        />
      ) : null}
      {secret === null ? null : <Secret text={secret} onClose={() => setSecret(null)} />}
      {leaving === null ? null : <Leave of={leaving} onDone={reload} onClose={() => setLeaving(null)} />}
      <Problems error={error} onRetry={reload} />
      {data === undefined ? (
        <Loading rows={2} />
      ) : data.length === 0 ? (
        <Empty title="Nobody is notified of the ends of jobs">
          <code>sluice notifications add --url https://example.com/hooks</code>
        </Empty>
      ) : (
        <Table caption="Subscriptions" isTall columns={all} rows={data} keyOf={({ id }) => id} />
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

function Leave({
  of,
  onDone,
  onClose,
}: {
  readonly of: Subscription;
  readonly onDone: () => void;
  readonly onClose: () => void;
}): VNode {
  const waiting = withQuery('/v1/deliveries', { state: 'pending', limit: 1 });
  return (
    <Confirm
      title={`Stop notifying ${visibleText(of.target)}`}
      isDestructive
      mayBeNone={() => true}
      count={async (signal) =>
        (await api<{ readonly metadata: { readonly total_count: number } }>(waiting, { signal })).metadata
          .total_count
      }
      sentence={(count) =>
        `Nothing more is sent there, and its secret is deleted. ${plural(count, 'delivery', 'deliveries')} of the environment ${count === 1 ? 'waits' : 'wait'}; those to it are given up.`
      }
      verb={() => 'Remove it'}
      act={async () => {
        await api(`/v1/subscriptions/${of.id}`, { method: 'DELETE' });
        onDone();
      }}
      onClose={onClose}
    />
  );
}
