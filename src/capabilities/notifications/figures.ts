import { plural } from '../../base/wording.ts';
import { readFigure, readFigures } from '../../postgres/pool.ts';
import type { Gauges } from '../../telemetry/gauges.ts';
import type { Counted, FigureSeam } from '../../telemetry/seam.ts';

type Backlog = Readonly<Record<'pendingNotifications' | 'deadNotifications', number>>;

const gauges: Gauges<Backlog> = {
  sluice_notifications_pending: ['Notifications still to be delivered.', (of) => of.pendingNotifications],
  sluice_notifications_dead: [
    'Kept notifications that were given up; a replay takes them off.',
    (of) => of.deadNotifications,
  ],
};

/*
 * Each state has a partial index.
 */
const backlogStatement = `
  select
    (select count(*) from notification_deliveries where state = 'pending') as "pendingNotifications",
    (select count(*) from notification_deliveries where state = 'dead') as "deadNotifications"`;

const deadStatement = `
  select v.environment_id as "environmentId", count(*) as count
  from notification_deliveries d
  join notification_events v on v.event_id = d.event_id
  where d.state = 'dead' and ($1::int is null or v.environment_id = $1)
  group by v.environment_id`;

export const figures: FigureSeam = {
  backlog: { read: (watch) => readFigure<Backlog>(watch, backlogStatement), gauges },
  async needs(pool, environmentId) {
    const rows = await readFigures<Counted>(pool, deadStatement, [environmentId]);
    return rows.map((each) => {
      const says = `${plural(each.count, 'notification')} could not be delivered`;
      return { ...each, kind: 'deliveries_dead', says };
    });
  },
};
