import { readFigure } from '../../postgres/pool.ts';
import type { Gauges } from '../../telemetry/gauges.ts';
import type { FigureSeam } from '../../telemetry/seam.ts';

interface LakeFigures {
  readonly eventsArchived: number;
  readonly lakeFiles: number;
  readonly lakeBytes: number;
  /** Seconds by which the lake is behind the database. 0 if there is no lake. */
  readonly lakeLag: number;
}

const gauges: Gauges<LakeFigures> = {
  sluice_lake_events: ['Events in the lake.', (of) => of.eventsArchived],
  sluice_lake_bytes: ['Bytes of the data files of the lake.', (of) => of.lakeBytes],
  sluice_lake_lag_seconds: [
    'Seconds since the lake last held all events; 0 without `LAKE_EVERY`.',
    (of) => of.lakeLag,
  ],
};

const statement = `
  select
    a.*,
    coalesce(extract(epoch from now() - coalesce(l.failing_since, l.ended_at)), 0)::float8 as "lakeLag"
  from (
    select
      coalesce(sum(row_count), 0)::bigint as "eventsArchived",
      count(*) as "lakeFiles",
      coalesce(sum(byte_count), 0)::bigint as "lakeBytes"
    from sluice.lake_files
    where state = 'stored' and kind = 'data'
  ) a
  left join sluice.event_prunings l on l.work = 'append' and exists (select 1 from sluice.lake_months)`;

export const figures: FigureSeam = {
  retention: { read: (watch) => readFigure<LakeFigures>(watch, statement), gauges },
};
