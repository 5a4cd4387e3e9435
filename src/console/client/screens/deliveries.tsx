import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type { Delivery, DeliveryDetail, Subscription, TestDelivery } from '../../../api/delivery.ts';
import {
  channels,
  type DeliveryState,
  defaultJobKinds,
  defaultOutcomes,
  deliveryStates,
  jobKinds,
  outcomes,
} from '../../../domain/notification.ts';
import {
  api,
  apiTotal,
  post,
  screenHref,
  session,
  useApi,
  useApiPage,
  useQuery,
  withQuery,
} from '../lib/api.ts';
import { formatMs, plural, visibleText } from '../lib/format.ts';
import {
  ActionButton,
  Checks,
  Code,
  CopyButton,
  FilterChoices,
  FilterText,
  InputField,
  named,
  SelectField,
} from '../ui/controls.tsx';
import { ConfirmButton, DialogButton, FormDialog, SecretDialog } from '../ui/dialog.tsx';
import {
  Badge,
  Empty,
  Facts,
  JobLink,
  Loaded,
  Page,
  Section,
  Time,
  type Tone,
  TwoLines,
} from '../ui/page.tsx';
import { type Column, List, TableSection } from '../ui/table.tsx';

export const deliveriesPath = '/v1/deliveries';
const everyMs = 3_000;
const filters = ['state', 'channel', 'since'] as const;

const tones: Readonly<Record<DeliveryState, Tone>> = { pending: 'waiting', delivered: 'good', dead: 'bad' };

export const deliveryColumns: readonly Column<Delivery>[] = [
  ['To', ({ target }) => <span class="name">{visibleText(target)}</span>],
  ['Event', ({ event_type }) => event_type, 'minor'],
  ['State', ({ state }) => <Badge tone={tones[state]}>{state}</Badge>],
  ['Last answer', ({ last_status, last_error }) => answerOf(last_status, last_error)],
  ['Tries', ({ attempts }) => attempts, 'num minor'],
  ['Took', ({ last_took_ms }) => formatMs(last_took_ms), 'num minor'],
  [
    'Last try',
    ({ last_attempt_at, next_at }) => <Time at={last_attempt_at ?? next_at} ago={last_attempt_at === null} />,
    'num minor',
  ],
];

export function deliveryHref({ delivery_id }: Delivery): string {
  return screenHref(`/deliveries/${delivery_id}`);
}

/** Lists what was sent to whom, and what is still to be sent. */
export function Deliveries(): VNode {
  const query = useQuery();
  const given = query.given(filters);
  const path = withQuery(deliveriesPath, { ...given, cursor: query.get('cursor') });
  const deliveries = useApiPage<Delivery>(path, everyMs);
  const isFiltered = Object.keys(given).length > 0;
  const of = query.filter;
  return (
    <Page title="Deliveries" actions={<Replay since={query.get('since')} onDone={deliveries.reload} />}>
      <Subscriptions onSent={deliveries.reload} />
      <search class="row filters">
        <FilterChoices label="State" options={deliveryStates.map((each) => [each, each])} {...of('state')} />
        <SelectField
          label="By"
          options={[['', 'All'], ...channels.map((each) => [each, each] as const)]}
          {...of('channel')}
        />
        <FilterText label="Since" type="date" {...of('since')} />
      </search>
      <List
        of={deliveries}
        one="delivery"
        many="deliveries"
        caption="Deliveries, newest first"
        columns={deliveryColumns}
        keyOf={({ delivery_id }) => delivery_id}
        hrefOf={deliveryHref}
        empty={isFiltered ? 'No delivery matches' : 'Nothing has been sent yet'}
      />
    </Page>
  );
}

const weekMs = 7 * 86_400_000;

interface ReplayProps {
  /** A day; empty for the last seven. */
  readonly since: string;
  readonly onDone: () => void;
}

function Replay({ since, onDone }: ReplayProps): VNode {
  const [weekAgo] = useState(new Date(Date.now() - weekMs).toISOString());
  const from = since === '' ? weekAgo : since;
  const deliveries = (count: number): string => plural(count, 'delivery', 'deliveries');
  return (
    <ConfirmButton
      label="Send failed ones again …"
      needs="import"
      title="Send failed deliveries again"
      count={(signal) => apiTotal(deliveriesPath, { state: 'dead', since: from }, signal)}
      sentence={(count) =>
        `${deliveries(count)} since ${from.slice(0, 10)} could not be delivered. Each is sent again with the same id.`
      }
      verb={(count) => `Send ${deliveries(count)} again`}
      act={async () => {
        await post(`${deliveriesPath}/replay`, { failed_since: from });
        onDone();
      }}
    />
  );
}

/** Shows a delivery: its attempts with their answers, and its body. */
export function Delivered(): VNode {
  const { delivery = '' } = useRoute().params;
  const own = `${deliveriesPath}/${encodeURIComponent(delivery)}`;
  const found = useApi<DeliveryDetail>(own, everyMs);
  const replay = async (): Promise<void> => {
    await post(`${own}/replay`);
    found.reload();
  };
  const state = found.data?.state;
  return (
    <Page
      title="Delivery"
      parent={{ title: 'Deliveries', href: screenHref('/deliveries') }}
      aside={state === undefined ? null : <Badge tone={tones[state]}>{state}</Badge>}
      actions={
        <ActionButton needs="import" act={replay}>
          Send again
        </ActionButton>
      }
    >
      <Loaded of={found}>{(data) => <Whole of={data} />}</Loaded>
    </Page>
  );
}

function Whole({ of }: { readonly of: DeliveryDetail }): VNode {
  return (
    <div class="columns">
      <div class="stack">
        <Section title="Details">
          <Facts
            of={[
              ['To', visibleText(of.target)],
              ['Event', of.event_type],
              ['Id', of.delivery_id],
              ['Job', of.job_id && <JobLink key="job" id={of.job_id} />],
              ['Written', <Time key="at" at={of.created_at} />],
              ['Delivered', <Time key="end" at={of.delivered_at} />],
              ['Next try', of.next_at === null ? null : <Time key="next" at={of.next_at} ago />],
            ]}
          />
        </Section>
        <TableSection
          title="Tries"
          of={of.tries}
          caption="Tries, latest first"
          columns={tryColumns}
          keyOf={({ attempt }) => String(attempt)}
          empty="It has not been tried yet"
        />
      </div>
      <Section title="What is sent" aside={<CopyButton text={of.body} />}>
        <Code>{JSON.stringify(JSON.parse(of.body), null, 2)}</Code>
      </Section>
    </div>
  );
}

const tryColumns: readonly Column<DeliveryDetail['tries'][number]>[] = [
  ['Try', ({ attempt }) => attempt],
  ['At', ({ begun_at }) => <Time at={begun_at} />],
  ['Answer', ({ status, error }) => answerOf(status, error)],
  ['Took', ({ took_ms }) => formatMs(took_ms), 'num minor'],
];

const subscriptionsPath = '/v1/subscriptions';

/** Lists who is notified of the ends of jobs. */
function Subscriptions({ onSent }: { readonly onSent: () => void }): VNode {
  const all = useApi<readonly Subscription[]>(subscriptionsPath);
  const isAdmin = session.value?.is_admin === true;
  const [secret, setSecret] = useState<string | null>(null);
  const made = (text: string | null): void => {
    setSecret(text);
    all.reload();
  };
  const title = isAdmin ? undefined : 'For administrators: sign in with ADMIN_KEY';
  return (
    <TableSection
      title="Who is notified"
      aside={
        <DialogButton label="Add a recipient …" disabled={!isAdmin} title={title}>
          {(close) => <NewSubscription onClose={close} onMade={made} />}
        </DialogButton>
      }
      of={all}
      room={2}
      caption="Subscriptions"
      isTall
      columns={[...subscriptionColumns(onSent), ...(isAdmin ? [leaveColumn(all.reload)] : [])]}
      keyOf={({ id }) => id}
      empty={
        <Empty title="Nobody is notified when jobs end">
          <code>sluice notifications add --url https://example.com/hooks</code>
        </Empty>
      }
    >
      {secret === null ? null : (
        <SecretDialog
          noun="secret"
          text={secret}
          hint="It signs each webhook: docs/notifications.md."
          onClose={() => setSecret(null)}
        />
      )}
    </TableSection>
  );
}

function subscriptionColumns(onSent: () => void): readonly Column<Subscription>[] {
  return [
    ['Recipient', ({ target }) => <span class="name">{visibleText(target)}</span>],
    [
      'State',
      ({ disabled_reason: why }) => (
        <TwoLines below={why && visibleText(why)}>
          <Badge tone={why === null ? 'good' : 'bad'}>{why === null ? 'live' : 'disabled'}</Badge>
        </TwoLines>
      ),
    ],
    ['Notified of', ({ on, types }) => `${types.join(', ')}: ${on.join(', ').replaceAll('_', ' ')}`, 'minor'],
    ['Action', (each) => <Ping of={each} onSent={onSent} />],
  ];
}

/** Returns what a receiver answered, or why there is no answer. */
function answerOf(status: number | null, error: string | null): VNode {
  const text = error !== null ? visibleText(error) : status === null ? '–' : `HTTP ${status}`;
  return <span class="break">{text}</span>;
}

function Ping({ of, onSent }: { readonly of: Subscription; readonly onSent: () => void }): VNode {
  const [result, setResult] = useState<TestDelivery | null>(null);
  const ping = async (): Promise<void> => {
    setResult(await post<TestDelivery>(`${subscriptionsPath}/${of.id}/test`));
    onSent();
  };
  return (
    <div class="row">
      <ActionButton needs="import" disabled={of.disabled_reason !== null} act={ping}>
        Send a ping
      </ActionButton>
      <span aria-live="polite" class={result?.delivered === false ? 'bad' : 'muted'}>
        {result?.delivered === true ? `arrived in ${formatMs(result.took_ms)}` : null}
        {result?.delivered === false ? answerOf(result.status, result.error) : null}
      </span>
    </div>
  );
}

function leaveColumn(onDone: () => void): Column<Subscription> {
  return [
    'Remove',
    ({ id, target }) => (
      <ConfirmButton
        look="quiet"
        label={named('Remove …', target)}
        title={`Stop notifying ${visibleText(target)}`}
        isDestructive
        sentence={() =>
          'Nothing more is sent there, pending deliveries are dropped, and its secret is deleted.'
        }
        verb={() => 'Remove it'}
        act={async () => {
          await api(`${subscriptionsPath}/${id}`, { method: 'DELETE' });
          onDone();
        }}
      />
    ),
  ];
}

interface NewProps {
  readonly onClose: () => void;
  /** Receives the secret of a webhook, which is shown once; `null` for an address. */
  readonly onMade: (secret: string | null) => void;
}

/** Adds a webhook or an e-mail address that is notified of the ends of jobs. */
function NewSubscription({ onClose, onMade }: NewProps): VNode {
  const [target, setTarget] = useState('');
  const [on, setOn] = useState(defaultOutcomes);
  const [types, setTypes] = useState(defaultJobKinds);
  const make = async (): Promise<void> => {
    const text = target.trim();
    const body = { ...(text.includes('://') ? { url: text } : { email: text }), on, types };
    onMade((await post<{ readonly secret: string | null }>(subscriptionsPath, body)).secret);
  };
  return (
    <FormDialog
      title="Add a recipient"
      verb="Add"
      isComplete={target.trim() !== '' && on.length > 0 && types.length > 0}
      act={make}
      onClose={onClose}
    >
      <InputField
        label="Webhook or address"
        hint="https://example.com/hooks, or ops@example.com"
        value={target}
        onInput={setTarget}
      />
      <Checks
        label="Outcomes"
        options={outcomes.map((each) => [each, each.replaceAll('_', ' ')])}
        chosen={on}
        onChange={setOn}
      />
      <Checks
        label="Jobs"
        options={jobKinds.map((each) => [each, `${each}s`])}
        chosen={types}
        onChange={setTypes}
      />
    </FormDialog>
  );
}
