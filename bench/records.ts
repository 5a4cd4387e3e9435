import type pg from 'pg';
import { uuidv7 } from '../src/base/uuid.ts';

export type RecordKind = 'track' | 'identify' | 'batch';

export const paths: Readonly<Record<RecordKind, string>> = {
  track: '/v1/track',
  identify: '/v1/identify',
  batch: '/v1/batch',
};

export const batchItems = 1_000;

export const users = 100_000;

const events = ['Report Exported', 'Dashboard Opened', 'Filter Applied', 'Invite Sent', 'Plan Viewed'];
const reports = ['Weekly active users', 'Retention', 'Funnel: sign-up', 'Revenue by plan'];
const plans = ['free', 'starter', 'business', 'enterprise'];
const countries = ['Germany', 'France', 'United States', 'Brazil', 'Japan', 'India'];

/** All events are different. Versions of a user differ only in `last_page`. */
export function recordBody(kind: RecordKind, run: string, n: number): string {
  if (kind === 'batch') {
    const items = Array.from({ length: batchItems }, (_, at) => ({
      type: 'track',
      ...event(run, n * batchItems + at),
    }));
    return JSON.stringify({ batch: items });
  }
  return JSON.stringify(kind === 'track' ? event(run, n) : user(run, n));
}

/** Returns events in COPY's text format. `storeUsers` has stored their users and companies. */
export function eventRows(environmentId: number, run: string, from: number, count: number): string {
  return Array.from({ length: count }, (_, at) => {
    const { user_id, event_name, metadata } = event(run, from + at);
    const company = `cmp_${(from + at) % 5_000}`;
    const json = JSON.stringify(metadata).replaceAll('\\', '\\\\');
    const columns = [
      environmentId,
      uuidv7(),
      event_name,
      user_id,
      company,
      'backend-http',
      new Date().toISOString(),
      json,
    ];
    return `${columns.join('\t')}\n`;
  }).join('');
}

function event(run: string, n: number) {
  return {
    user_id: userId(n % users),
    event_name: events[n % events.length],
    metadata: {
      report: reports[n % reports.length],
      format: n % 3 === 0 ? 'csv' : 'pdf',
      rows: n,
      duration_ms: (n % 977) / 4,
      session: `${run}-${n}`,
    },
  };
}

function user(run: string, n: number): object {
  return { user_id: userId(n), metadata: { ...properties(n), last_page: `/reports/${n % 40}?run=${run}` } };
}

function userId(n: number): string {
  return `usr_${String(n).padStart(6, '0')}`;
}

function properties(n: number): Readonly<Record<string, string | undefined>> {
  return {
    name: `User ${n}`,
    email: `user.${n}@example.com`,
    plan: plans[n % plans.length],
    country: countries[n % countries.length],
  };
}

/** As `/v1/identify` would. */
export async function storeUsers(client: pg.Client): Promise<void> {
  for (let from = 0; from < users; from += 10_000) {
    const rows = Array.from({ length: 10_000 }, (_, at) => {
      const n = from + at;
      return { k: userId(n), p: { ...properties(n), last_page: '/' } };
    });
    await client.query(
      `insert into sluice.users (environment_id, user_id, company_id, metadata)
       select environment_id, k, 'cmp_' || hashtext(k) % 5000, p
       from sluice.environments, json_to_recordset($1::json) as i (k text, p jsonb)
       where name = 'default'`,
      [JSON.stringify(rows)],
    );
  }
  await client.query('vacuum analyze sluice.users');
}

/** Waits until the number of stored records of a run stops growing. */
export async function countStored(client: pg.Client, kind: RecordKind, run: string): Promise<number> {
  const statement =
    kind !== 'identify'
      ? `select count(*)::int as rows from sluice.events where metadata ->> 'session' like $1 || '-%'`
      : `select count(*)::int as rows from sluice.users where metadata ->> 'last_page' like '%?run=' || $1`;
  // Requests in progress may still be committed when the sender has stopped.
  let before = -1;
  while (true) {
    const { rows } = await client.query<{ rows: number }>(statement, [run]);
    const now = rows[0]?.rows ?? 0;
    if (now === before) return now;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
