import { jobKinds, outcomes } from '../../../src/domain/notification.ts';
import { addSubscription } from '../../../src/notifications/subscriptions.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { createPool } from '../../../src/postgres/pool.ts';
import { until } from '../patience.ts';
import { ownSession, type Sql } from '../site/site.ts';
import { type Actor, type Stage, some } from './actor.ts';
import { type Told, WebhookReceiver } from './webhook-receiver.ts';

/** A job, or a run of a schedule, that has ended. */
interface Ended {
  readonly kind: 'load' | 'export' | 'schedule';
  /** Of the job; of a run its schedule and due time. */
  readonly name: string;
  readonly status: string;
  readonly outcome: string;
  /** How often it has ended. */
  readonly ends: number;
  /** Records that it read; null: it is no load. */
  readonly read: number | null;
}

const patienceMs = 90_000;

/** Is told of every end in one environment, by a webhook of its own, which is not always at its best. */
export function createNotifications(
  stage: Stage,
  options: { readonly name: string; readonly tenant: number },
): Actor {
  const { name } = options;
  const tenant = stage.tenant(options.tenant);
  const receiver = new WebhookReceiver(stage.random(name));
  const countTaken = (): number => [...receiver.received.values()].filter(({ isTaken }) => isTaken).length;

  return {
    name,
    async prepare() {
      const target = await receiver.open();
      const pool = createPool({ url: stage.site.databaseUrl, max: 1, applicationName: ownSession });
      const wish = { channel: 'webhook', target, outcomes, kinds: jobKinds } as const;
      const allowed = { allowHttp: true, allowPrivate: true };
      const { secret } = await addSubscription(createDatabase(pool), tenant.environmentId, wish, allowed);
      await pool.end();
      receiver.secret = secret ?? '';
    },
    // It only listens.
    run: async () => undefined,
    figures: () => ({ told: receiver.received.size, taken: countTaken(), ...receiver.figures }),
    async check(sql: Sql) {
      receiver.isMoody = false;
      const pending = await awaitDeliveries(sql, tenant.environmentId);
      const tolds = new Map<string, Told[]>();
      for (const { told } of receiver.received.values()) {
        const key = keyOf(told);
        tolds.set(key, [...(tolds.get(key) ?? []), told]);
      }
      const wrong: string[] = [];
      for (const ended of await readEnded(sql, tenant.environmentId)) {
        const key = `${ended.kind} ${ended.name}`;
        wrong.push(...compare(key, ended, tolds.get(key) ?? []));
        tolds.delete(key);
      }
      const untrue = [...tolds.keys()].map((key) => `told of ${key}, which has not ended`);
      const notTaken = [...receiver.received].filter(([, { isTaken }]) => !isTaken).map(([id]) => id);
      if (notTaken.length > 0) wrong.push(`${notTaken.length} events were never taken: ${some(notTaken)}`);
      return [...receiver.problems, ...pending, ...wrong.slice(0, 20), ...untrue.slice(0, 20)];
    },
  };
}

/** Of a job that ended, was retried and ended again, two events tell; the earlier end was a cancellation. */
function compare(
  key: string,
  { kind, status, outcome, ends, read }: Ended,
  tolds: readonly Told[],
): string[] {
  const said = tolds.map(({ type }) => type).join(', ');
  const last = tolds.filter(({ type }) => type === `${kind}.${outcome}`);
  const before = tolds.filter(({ type }) => type === `${kind}.cancelled`).length;
  const isRight = outcome === 'cancelled' ? last.length === ends : last.length === 1 && before === ends - 1;
  if (!isRight || tolds.length !== ends) {
    return [`${key} ended ${ends} times, at last ${outcome}, and was told of: ${said || 'never'}`];
  }
  return last.flatMap(({ data }) => [
    ...(data.status === status ? [] : [`${key} is ${status}, and was told of as ${data.status}`]),
    ...(outcome === 'cancelled' || read === null || data.counts?.read === read
      ? []
      : [`${key} read ${read} records, and was told to have read ${data.counts?.read}`]),
  ]);
}

function keyOf({ type, data }: Told): string {
  const kind = type.slice(0, type.indexOf('.'));
  return `${kind} ${kind === 'schedule' ? `${data.schedule} ${data.due_at}` : data.job_id}`;
}

async function readEnded(sql: Sql, environmentId: number): Promise<Ended[]> {
  return sql<Ended>(
    `select 'load' as kind, job_id::text as name, status, attempts as ends, rows_read as read,
       case when status = 'completed' and rows_rejected > 0 then 'completed_with_rejects' else status end as outcome
     from sluice.loads where environment_id = $1 and ended_at is not null
     union all
     select 'export', job_id::text, status, 1, null, status
     from sluice.exports where environment_id = $1 and ended_at is not null
     union all
     select 'schedule',
       schedule_name || ' ' || to_char(due_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), status, 1, null, status
     from sluice.schedule_runs
     where environment_id = $1 and status in ('completed', 'completed_with_rejects', 'failed')`,
    [environmentId],
  );
}

/**
 * Waits until all is delivered. A second try comes 15 s after the first, a third a minute later, and what a worker was killed
 * over after two minutes: none of that is waited for. What is neither, in words.
 */
async function awaitDeliveries(sql: Sql, environmentId: number): Promise<readonly string[]> {
  let left: readonly string[] = ['deliveries could not be read'];
  await until(
    async () => {
      const rows = await sql<{ what: string }>(
        `select 'delivery of event ' || event_id || ' is ' || state || ': ' || coalesce(last_error, 'no error') as what
         from sluice.notification_deliveries join sluice.notification_events using (event_id)
         where environment_id = $1 and state <> 'delivered'`,
        [environmentId],
      );
      left = rows.slice(0, 20).map(({ what }) => what);
      if (left.length === 0) return true;
      await sql(
        `update sluice.notification_deliveries
         set next_at = least(next_at, now()),
           lease_until = case when last_attempt_at < now() - interval '5 seconds' and lease_until > now() then now()
             else lease_until end
         where state = 'pending' and greatest(next_at, lease_until) > now()`,
      );
      return null;
    },
    { timeoutMs: patienceMs, everyMs: 500 },
  );
  return left;
}
