import type { VNode } from 'preact';
import { useRoute } from 'preact-iso';
import { api, mayUse } from '../../lib/api.ts';
import { formatMs, visibleText } from '../../lib/format.ts';
import { screenHref } from '../../lib/place.ts';
import { useAction, useData } from '../../lib/use-data.ts';
import { Badge } from '../../ui/badge.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Facts, Page, Section } from '../../ui/page.tsx';
import { Empty, Loading, Problems } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { answerOf, type DeliveryDetail, path, type Try, tones } from './delivery-record.ts';

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
      title="Delivery"
      parent={{ title: 'Deliveries', href: screenHref('/deliveries') }}
      aside={data === undefined ? null : <Badge tone={tones[data.state] ?? 'waiting'}>{data.state}</Badge>}
      actions={
        <button
          type="button"
          class="button"
          disabled={!mayUse('import') || replay.isRunning}
          onClick={() => void replay.run()}
        >
          Send again
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
        <Section title="Details">
          <Facts
            of={[
              [
                'To',
                <span key="to" class="break">
                  {visibleText(of.target)}
                </span>,
              ],
              ['Event', of.event_type],
              ['Id', of.delivery_id],
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
