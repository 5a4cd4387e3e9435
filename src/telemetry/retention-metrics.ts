import type { EventRetention } from '../postgres/stores/retention.ts';
import type { MakeGauge } from './schedule-metrics.ts';

/** Gauges of the events that outlived their retention. */
export function createRetentionGauges(gauge: MakeGauge): { show(retention: EventRetention | null): void } {
  const removed = gauge(
    'sluice_events_removed',
    'Events that were removed because they outlived their retention.',
  );
  const rows = gauge('sluice_event_archive_rows', 'Events in archives.');
  const bytes = gauge('sluice_event_archive_bytes', 'Bytes of the archives of events.');
  const failing = gauge(
    'sluice_event_pruning_failing',
    '1 if the latest pruning of events did not do all that was to be done.',
  );
  return {
    show(retention) {
      if (retention === null) {
        for (const each of [removed, rows, bytes, failing]) each.remove();
        return;
      }
      removed.set(retention.eventsRemoved);
      rows.set(retention.eventsArchived);
      bytes.set(retention.archiveBytes);
      failing.set(retention.error === null ? 0 : 1);
    },
  };
}
