import type { Delivery } from '../../../../api/delivery.ts';
import type { DeliveryState } from '../../../../domain/notification.ts';
import { formatMs, visibleText } from '../../lib/format.ts';
import { Badge, type Tone } from '../../ui/badge.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/text.tsx';

export const deliveriesPath = '/v1/deliveries';
export const deliveryTones: Readonly<Record<DeliveryState, Tone>> = {
  pending: 'waiting',
  delivered: 'good',
  dead: 'bad',
};

interface Answer {
  readonly status: number | null;
  readonly error: string | null;
}

/** Returns what a receiver answered, or why there is no answer. */
export function answerOf({ status, error }: Answer): string {
  if (error !== null) return visibleText(error);
  return status === null ? '–' : `HTTP ${status}`;
}

export const deliveryColumns: readonly Column<Delivery>[] = [
  { title: 'To', cell: ({ target }) => <span class="name">{visibleText(target)}</span> },
  { title: 'Event', is: 'minor', cell: ({ event_type }) => event_type },
  { title: 'State', cell: ({ state }) => <Badge tone={deliveryTones[state]}>{state}</Badge> },
  {
    title: 'Last answer',
    cell: ({ last_status, last_error }) => (
      <span class="break">{answerOf({ status: last_status, error: last_error })}</span>
    ),
  },
  { title: 'Tries', is: 'num', cell: ({ attempts }) => attempts },
  { title: 'Took', is: 'num minor', cell: ({ last_took_ms }) => formatMs(last_took_ms) },
  {
    title: 'Last try',
    is: 'num minor',
    cell: ({ last_attempt_at, next_at }) =>
      last_attempt_at === null && next_at !== null ? (
        <Time at={next_at} ago />
      ) : (
        <Time at={last_attempt_at} />
      ),
  },
];
