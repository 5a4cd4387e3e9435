import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type { Delivery, DeliveryDetail } from '../../../api/delivery.ts';
import { channels, type DeliveryState, deliveryStates } from '../../../domain/notification.ts';
import { apiTotal, post, screenHref, useApi, useApiPage, useQuery, withQuery } from '../lib/api.ts';
import { formatMs, plural, visibleText } from '../lib/format.ts';
import { jobHref } from '../lib/jobs.ts';
import { ActionButton, Code, CopyButton, FilterChoices, FilterSelect, FilterText } from '../ui/controls.tsx';
import { ConfirmButton } from '../ui/dialog.tsx';
import { Badge, Empty, Facts, Loaded, Page, Section, Time, type Tone } from '../ui/page.tsx';
import { type Column, List, Table } from '../ui/table.tsx';
import { answerOf, Subscriptions } from './subscriptions.tsx';

export const deliveriesPath = '/v1/deliveries';
const everyMs = 3_000;
const filters = ['state', 'channel', 'since'] as const;

const tones: Readonly<Record<DeliveryState, Tone>> = { pending: 'waiting', delivered: 'good', dead: 'bad' };

export const deliveryColumns: readonly Column<Delivery>[] = [
  { title: 'To', cell: ({ target }) => <span class="name">{visibleText(target)}</span> },
  { title: 'Event', is: 'minor', cell: ({ event_type }) => event_type },
  { title: 'State', cell: ({ state }) => <Badge tone={tones[state]}>{state}</Badge> },
  { title: 'Last answer', cell: ({ last_status, last_error }) => answerOf(last_status, last_error) },
  { title: 'Tries', is: 'num', cell: ({ attempts }) => attempts },
  { title: 'Took', is: 'num minor', cell: ({ last_took_ms }) => formatMs(last_took_ms) },
  {
    title: 'Last try',
    is: 'num minor',
    cell: ({ last_attempt_at, next_at }) => (
      <Time at={last_attempt_at ?? next_at} ago={last_attempt_at === null} />
    ),
  },
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
        <FilterSelect
          label="By"
          options={[['', 'All'], ...channels.map((each) => [each, channelNames[each]] as const)]}
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
        empty={<Empty title={isFiltered ? 'No delivery matches' : 'Nothing has been sent yet'} />}
      />
    </Page>
  );
}

const channelNames: Readonly<Record<(typeof channels)[number], string>> = {
  webhook: 'Webhook',
  email: 'E-mail',
};
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
      label="Replay what was given up …"
      needs="import"
      title="Replay what was given up"
      count={(signal) => apiTotal(deliveriesPath, { state: 'dead', since: from }, signal)}
      sentence={(count) =>
        `${deliveries(count)} since ${from.slice(0, 10)} ${count === 1 ? 'was' : 'were'} given up. Each is sent again under the id that it had.`
      }
      verb={(count) => `Replay ${deliveries(count)}`}
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
              ['Job', of.job_id === null ? null : <a href={jobHref(of.job_id)}>its job</a>],
              ['Written', <Time key="at" at={of.created_at} />],
              ['Delivered', <Time key="end" at={of.delivered_at} />],
              ['Next try', of.next_at === null ? null : <Time key="next" at={of.next_at} ago />],
            ]}
          />
        </Section>
        <Section title="Attempts" flush>
          <Table
            caption="Attempts, the latest first"
            columns={tryColumns}
            rows={of.tries}
            keyOf={({ attempt }) => String(attempt)}
            empty={<Empty title="It has not been tried yet" />}
          />
        </Section>
      </div>
      <Section title="What is sent" aside={<CopyButton text={of.body} />}>
        <Code>{JSON.stringify(JSON.parse(of.body), null, 2)}</Code>
      </Section>
    </div>
  );
}

const tryColumns: readonly Column<DeliveryDetail['tries'][number]>[] = [
  { title: 'Try', cell: ({ attempt }) => attempt },
  { title: 'At', cell: ({ begun_at }) => <Time at={begun_at} /> },
  { title: 'Answer', cell: ({ status, error }) => answerOf(status, error) },
  { title: 'Took', is: 'num minor', cell: ({ took_ms }) => formatMs(took_ms) },
];
