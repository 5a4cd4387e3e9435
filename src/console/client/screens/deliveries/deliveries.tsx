import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type { Delivery, DeliveryDetail } from '../../../../api/delivery.ts';
import { channels, deliveryStates } from '../../../../domain/notification.ts';
import { screenHref, useQuery, withQuery } from '../../lib/address.ts';
import { api, apiPage, apiTotal } from '../../lib/api.ts';
import { formatMs, plural, visibleText } from '../../lib/format.ts';
import { jobHref } from '../../lib/jobs.ts';
import { useData } from '../../lib/use-data.ts';
import { Badge } from '../../ui/badge.tsx';
import { ActionButton, Button, Code, CopyButton } from '../../ui/button.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { FilterChoices, FilterSelect, FilterText } from '../../ui/field.tsx';
import { Facts, Page, Section } from '../../ui/page.tsx';
import { Empty, Loaded, Loading, Problems } from '../../ui/problems.tsx';
import { type Column, Pager, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/text.tsx';
import { answerOf, deliveriesPath, deliveryColumns, deliveryTones } from './delivery.tsx';
import { Subscriptions } from './subscriptions.tsx';

const everyMs = 3_000;
const filters = ['state', 'channel', 'since'] as const;

/** Lists what was sent to whom, and what is still to be sent. */
export function Deliveries(): VNode {
  const query = useQuery();
  const [isAsking, setAsking] = useState(false);
  const given = query.given(filters);
  const asked = withQuery(deliveriesPath, { ...given, cursor: query.get('cursor') });
  const { data, error, reload } = useData(asked, (signal) => apiPage<Delivery>(asked, { signal }), {
    everyMs,
  });
  const of = (name: string) => ({ value: query.get(name), onChange: query.filter(name) });
  return (
    <Page
      title="Deliveries"
      actions={
        <Button needs="import" onClick={() => setAsking(true)}>
          Replay what was given up …
        </Button>
      }
    >
      {isAsking ? (
        <Replay since={query.get('since')} onClose={() => setAsking(false)} onDone={reload} />
      ) : null}
      <Subscriptions onSent={reload} />
      <search class="filters">
        <FilterChoices label="State" options={deliveryStates.map((each) => [each, each])} {...of('state')} />
        <FilterSelect
          label="By"
          options={[['', 'All'], ...channels.map((each) => [each, channelNames[each]] as const)]}
          {...of('channel')}
        />
        <FilterText label="Since" type="date" {...of('since')} />
      </search>
      <Problems error={error} onRetry={reload} />
      <div class="panel">
        {data === undefined ? (
          <Loading />
        ) : (
          <>
            <Table
              caption="Deliveries, newest first"
              columns={deliveryColumns}
              rows={data.items}
              keyOf={({ delivery_id }) => delivery_id}
              hrefOf={({ delivery_id }) => screenHref(`/deliveries/${delivery_id}`)}
              isSelectable
              empty={
                <Empty
                  title={Object.keys(given).length > 0 ? 'No delivery matches' : 'Nothing has been sent yet'}
                />
              }
            />
            {data.items.length === 0 ? null : <Pager page={data} one="delivery" many="deliveries" />}
          </>
        )}
      </div>
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
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function Replay({ since, onClose, onDone }: ReplayProps): VNode {
  const [from] = useState(since === '' ? new Date(Date.now() - weekMs).toISOString() : since);
  return (
    <Confirm
      title="Replay what was given up"
      count={(signal) => apiTotal(deliveriesPath, { state: 'dead', since: from }, signal)}
      sentence={(count) =>
        `${plural(count, 'delivery', 'deliveries')} since ${from.slice(0, 10)} ${count === 1 ? 'was' : 'were'} given up. Each is sent again under the id that it had.`
      }
      verb={(count) => `Replay ${plural(count, 'delivery', 'deliveries')}`}
      act={async () => {
        await api(`${deliveriesPath}/replay`, { method: 'POST', body: { failed_since: from } });
        onDone();
      }}
      onClose={onClose}
    />
  );
}

/** Shows a delivery: its attempts with their answers, and its body. */
export function Delivered(): VNode {
  const { delivery = '' } = useRoute().params;
  const own = `${deliveriesPath}/${encodeURIComponent(delivery)}`;
  const found = useData(own, (signal) => api<DeliveryDetail>(own, { signal }), { everyMs });
  const replay = async (): Promise<void> => {
    await api(`${own}/replay`, { method: 'POST' });
    found.reload();
  };
  const state = found.data?.state;
  return (
    <Page
      title="Delivery"
      parent={{ title: 'Deliveries', href: screenHref('/deliveries') }}
      aside={state === undefined ? null : <Badge tone={deliveryTones[state]}>{state}</Badge>}
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
        <Code>{indented(of.body)}</Code>
      </Section>
    </div>
  );
}

const tryColumns: readonly Column<DeliveryDetail['tries'][number]>[] = [
  { title: 'Try', cell: ({ attempt }) => attempt },
  { title: 'At', cell: ({ begun_at }) => <Time at={begun_at} /> },
  { title: 'Answer', cell: (each) => <span class="break">{answerOf(each)}</span> },
  { title: 'Took', is: 'num minor', cell: ({ took_ms }) => formatMs(took_ms) },
];

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
