import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/**
 * `csv` and `ndjson` are files in our own formats, `mixpanel` is an export of Mixpanel, and `copy`
 * is input for COPY with `readyColumns`.
 */
export const eventsFormats = ['csv', 'ndjson', 'mixpanel', 'copy'] as const;
export type EventsFormat = (typeof eventsFormats)[number];

export const readyColumns =
  'environment_id, event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata';

export const eventMonths = ['2026-06-01', '2026-07-01', '2026-08-01'] as const;
const from = Date.parse('2026-06-01T00:00:00Z');
const to = Date.parse('2026-09-01T00:00:00Z');

const names = ['Signed Up', 'Report Opened', 'Report Shared', 'Invoice Paid', 'Seat Added', 'Search Run'];
const plans = ['free', 'starter', 'business', 'enterprise'];
const browsers = ['Firefox', 'Chrome', 'Safari', 'Edge'];
const header = 'event_type,event_name,user_id,company_id,inserted_at,plan,browser,duration_ms,path\n';

/** Returns the event with the number `n`. Events have equal intervals over three months. */
function event(n: number, rows: number) {
  const hash = Math.imul(n + 1, 2_654_435_761) >>> 0;
  const user = hash % 200_000;
  return {
    at: new Date(from + Math.floor(((to - from) / rows) * n)).toISOString(),
    name: names[hash % names.length] ?? '',
    user: `usr_${user.toString(16).padStart(8, '0')}`,
    company: `cmp_${user % 5_000}`,
    properties: {
      path: `/reports/${hash % 10_000}`,
      plan: plans[user % plans.length] ?? '',
      browser: browsers[(hash >>> 8) % browsers.length] ?? '',
      duration_ms: String(hash % 60_000),
    },
  };
}

function line(n: number, rows: number, format: EventsFormat): string {
  const { at, name, user, company, properties } = event(n, rows);
  const { path, plan, browser, duration_ms } = properties;
  if (format === 'csv') {
    return `track,${name},${user},${company},${at},${plan},${browser},${duration_ms},${path}\n`;
  }
  if (format === 'ndjson') {
    const record = { event_type: 'track', event_name: name, user_id: user, company_id: company };
    return `${JSON.stringify({ ...record, inserted_at: at, metadata: properties })}\n`;
  }
  if (format === 'mixpanel') {
    const ids = { distinct_id: user, $insert_id: n.toString(36).padStart(12, '0'), company_id: company };
    return `${JSON.stringify({ event: name, properties: { time: Date.parse(at), ...ids, ...properties } })}\n`;
  }
  // This id is as long and as random as the one that sluice computes from an event.
  const id = [n, ~n]
    .map((part) => (Math.imul(part, 2_246_822_519) >>> 0).toString(36).padStart(6, '0').slice(-6))
    .join('');
  return `1\t${id}\ttrack\t${name}\t${user}\t${company}\timport\t${at}\t${JSON.stringify(properties)}\n`;
}

function* text(rows: number, format: EventsFormat): Generator<string> {
  let block = format === 'csv' ? header : '';
  for (let n = 0; n < rows; n++) {
    block += line(n, rows, format);
    if (block.length > 1 << 20) {
      yield block;
      block = '';
    }
  }
  yield block;
}

/** The same arguments always produce the same file. */
export async function writeEventsFile(path: string, rows: number, format: EventsFormat): Promise<void> {
  await pipeline(Readable.from(text(rows, format)), createWriteStream(path));
}
