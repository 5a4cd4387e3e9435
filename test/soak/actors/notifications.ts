import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { jobKinds, outcomes } from '../../../src/domain/notification.ts';
import { addSubscription } from '../../../src/notifications/subscriptions.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { createPool } from '../../../src/postgres/pool.ts';
import type { Random } from '../random.ts';
import { ownSession, type Sql } from '../site/site.ts';
import { pause, until } from '../waiting.ts';
import { type Actor, type Stage, some } from './actor.ts';

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

const giveUpMs = 90_000;

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
 * over after eight seconds: none of that is waited for. What is neither, in words.
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
      await sql(`update sluice.tasks set not_before = now() where kind = 'delivery' and not_before > now()`);
      return null;
    },
    { timeoutMs: giveUpMs, everyMs: 500 },
  );
  return left;
}

/** What was told, as far as it is compared. */
export interface Told {
  readonly type: string;
  readonly data: {
    readonly status: string;
    readonly job_id?: string;
    readonly schedule?: string;
    readonly due_at?: string;
    readonly counts?: { readonly read: number } | null;
  };
}

interface Received {
  readonly text: string;
  readonly told: Told;
  /** Answered 200. */
  isTaken: boolean;
}

const toleranceSeconds = 5 * 60;
const longestHangMs = 2_500;

/** Takes webhooks, on this machine; not all of them at the first time, nor at once, as long as it is moody. */
export class WebhookReceiver {
  readonly problems: string[] = [];
  /** By event id. */
  readonly received = new Map<string, Received>();
  readonly figures = { requests: 0, refused: 0, hung: 0, dropped: 0 };
  isMoody = true;
  /** As `sluice notifications add` prints it. */
  secret = '';
  readonly #random: Random;
  readonly #server: Server;

  constructor(random: Random) {
    this.#random = random;
    this.#server = createServer((request, response) => {
      void buffer(request)
        .then(async (bytes) => {
          const status = await this.#take(request.headers, bytes);
          if (status === null) request.socket.destroy();
          else response.writeHead(status).end();
        })
        // Whoever sent it was killed.
        .catch(() => undefined);
    });
  }

  /** Resolves with its address. */
  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1').unref();
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  /** The status to be answered; null: none, as if we had died after it was taken. */
  async #take(headers: IncomingHttpHeaders, bytes: Buffer): Promise<number | null> {
    this.figures.requests++;
    if (!isSigned(this.secret, headers, bytes)) {
      this.problems.push(`a webhook is not signed as it must be: ${bytes.toString('utf8').slice(0, 300)}`);
      return 401;
    }
    const received = this.#keep(String(headers['webhook-id']), bytes.toString('utf8'));
    const mood = this.isMoody ? this.#random.next() : 1;
    if (mood < 0.1) {
      this.figures.refused++;
      return 500;
    }
    if (mood < 0.15) {
      this.figures.dropped++;
      return null;
    }
    if (mood < 0.2) {
      this.figures.hung++;
      await pause(this.#random.integer(200, longestHangMs));
    }
    received.isTaken = true;
    return 200;
  }

  /** The same id is the same event, to the byte. */
  #keep(id: string, text: string): Received {
    const before = this.received.get(id);
    if (before !== undefined) {
      if (before.text !== text) this.problems.push(`event ${id} came again with another body`);
      return before;
    }
    const told = JSON.parse(text) as Told & { readonly id: string };
    if (told.id !== id) this.problems.push(`the body of event ${id} says that it is ${told.id}`);
    const received = { text, told, isTaken: false };
    this.received.set(id, received);
    return received;
  }
}

/** By the standard's words, not by our code. */
function isSigned(secret: string, headers: IncomingHttpHeaders, bytes: Buffer): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= toleranceSeconds)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const wanted = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(bytes).digest();
  return String(signatures)
    .split(' ')
    .map((signature) => Buffer.from(signature.replace(/^v1,/, ''), 'base64'))
    .some((given) => given.length === wanted.length && timingSafeEqual(given, wanted));
}
