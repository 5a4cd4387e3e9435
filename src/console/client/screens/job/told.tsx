import type { VNode } from 'preact';
import { type ApiError, apiPage, withQuery } from '../../lib/api.ts';
import { formatMs, visibleText } from '../../lib/format.ts';
import { useData } from '../../lib/use-data.ts';
import { Badge, type Tone } from '../../ui/badge.tsx';
import { Section } from '../../ui/page.tsx';
import { Problems } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

interface Delivery {
  readonly delivery_id: string;
  readonly channel: string;
  readonly target: string;
  readonly state: string;
  readonly attempts: number;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly last_took_ms: number | null;
  readonly next_at: string | null;
  readonly delivered_at: string | null;
}

const pollMs = 5_000;
const tones: Readonly<Record<string, Tone>> = { delivered: 'good', pending: 'waiting', dead: 'bad' };

const columns: readonly Column<Delivery>[] = [
  { id: 'target', title: 'To', cell: ({ target }) => <span class="break">{visibleText(target)}</span> },
  { id: 'channel', title: 'By', isMinor: true, cell: ({ channel }) => channel },
  {
    id: 'state',
    title: 'State',
    cell: ({ state }) => <Badge tone={tones[state] ?? 'waiting'}>{state}</Badge>,
  },
  {
    id: 'answer',
    title: 'Answer',
    cell: ({ last_status, last_error }) => (
      <span class="break">{last_error ?? (last_status === null ? '–' : String(last_status))}</span>
    ),
  },
  { id: 'attempts', title: 'Attempts', isNumber: true, isMinor: true, cell: ({ attempts }) => attempts },
  {
    id: 'took',
    title: 'Took',
    isNumber: true,
    isMinor: true,
    cell: ({ last_took_ms }) => (last_took_ms === null ? '–' : formatMs(last_took_ms)),
  },
  {
    id: 'at',
    title: 'Delivered',
    isNumber: true,
    cell: ({ delivered_at, next_at }) =>
      delivered_at === null && next_at !== null ? <Time at={next_at} ago /> : <Time at={delivered_at} />,
  },
];

/** Who was told that the job ended, and what they answered. Nothing where nobody was to be told. */
export function Told({ jobId }: { readonly jobId: string }): VNode | null {
  const path = withQuery('/v1/deliveries', { job_id: jobId });
  const told = useData(path, (signal) => apiPage<Delivery>(path, { signal }), { everyMs: pollMs });
  const error: ApiError | null = told.error;
  if (error === null && (told.data === undefined || told.data.items.length === 0)) return null;
  return (
    <Section title="Notifications" flush>
      <Problems error={error} onRetry={told.reload} />
      <Table
        caption="Deliveries of the end of this job"
        columns={columns}
        rows={told.data?.items ?? []}
        keyOf={({ delivery_id }) => delivery_id}
      />
    </Section>
  );
}
