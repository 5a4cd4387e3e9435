import { userId } from './csv-lines.ts';
import { createRandom, pick } from './random.ts';

const dayMs = 24 * 60 * 60 * 1000;
/** Three months. */
export const eventDays = 92;

const names = ['report_created', 'report_exported', 'dashboard_viewed', 'teammate_invited', 'invoice_paid'];
const browsers = ['Chrome', 'Edge', 'Firefox', 'Safari'];
const currencies = ['EUR', 'GBP', 'USD'];

/** Event `n` of `count`, spread evenly over the days up to `now`; some users do far more than others. */
export function eventBody(n: number, count: number, users: number, now: number): string {
  const random = createRandom(n + 7);
  const name = pick(names, random);
  const metadata =
    name === 'invoice_paid'
      ? { amount: 10 + Math.floor(random() * 4_000), currency: pick(currencies, random) }
      : { browser: pick(browsers, random), seconds: Math.floor(random() * 300) };
  return JSON.stringify({
    user_id: userId(Math.floor(users * random() ** 3)),
    event_name: name,
    inserted_at: new Date(now - eventDays * dayMs + ((n + 1) / count) * eventDays * dayMs).toISOString(),
    metadata,
  });
}
