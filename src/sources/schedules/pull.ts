import { Readable } from 'node:stream';
import {
  MAX_PULL_DAYS,
  MAX_PULL_PAGE_BYTES,
  PULL_ANSWER_MS,
  PULL_LAG_MS,
  PULL_PAGE_ROWS,
} from '../../domain/limits.ts';
import type { ScheduleSettings } from './context.ts';
import { type Answered, ask, checkHeader, openAnswer, rulesOf } from './http.ts';
import { type Product, productHosts, products } from './products.ts';
import type { LoadDefinition, SourceDefinition } from './schedules-schema.ts';
import { fillIn, type OpenItem, type Source, SourceFailure, tooLarge } from './source.ts';

/**
 * Pull: the export API of another product, day by day. A day is an item of its source, as a file is of others; its version says
 * whether it is final or as of which day it was fetched, so that late events are fetched too.
 */

/** Sends a request with the key of the project: a POST if it has a body. @throws SourceFailure */
type AskProject = (path: string, body?: string) => Promise<Answered>;

interface Api<K extends Product> {
  /** The value of the header Authorization. */
  readonly authorize: (definition: SourceDefinition<K>, secret: (text: string) => string) => string;
  /** Opens a day, such as `2026-03-01`; with `hasHours` also an hour of one, `2026-03-01T05`. */
  readonly openDay: (definition: SourceDefinition<K>, day: string, ask: AskProject) => Promise<OpenItem>;
  /** Days that are too large can be had by the hour. */
  readonly hasHours?: true;
}

const apis: { readonly [K in Product]: Api<K> } = {
  mixpanel: {
    authorize: ({ user, secret }, fill) =>
      user === undefined ? basic(fill(secret), '') : basic(fill(user), fill(secret)),
    openDay: openMixpanelDay,
  },
  amplitude: {
    authorize: ({ api_key, secret_key }, fill) => basic(fill(api_key), fill(secret_key)),
    openDay: openAmplitudeDay,
    hasHours: true,
  },
  posthog: {
    authorize: ({ api_key }, fill) => `Bearer ${fill(api_key)}`,
    openDay: openPosthogDay,
  },
};

/**
 * Opens MAX_PULL_DAYS of the days that are over and not final. The newest come first, so that old ones that are refused for ever
 * hold up no others.
 */
export function openPull<K extends Product>(
  product: K,
  definition: SourceDefinition<K>,
  timeZone: string,
  settings: ScheduleSettings,
): Source {
  const { authorize, openDay, hasHours } = apis[product];
  const { region, host } = definition;
  const base = host ?? `https://${(productHosts[product] as Readonly<Record<string, string>>)[region]}`;
  const rules = rulesOf(definition, settings, PULL_ANSWER_MS);
  return {
    async list(isDone, signal) {
      const fill = (text: string) => checkHeader(product, fillIn(text, settings.variables));
      const headers = { authorization: authorize(definition, fill), 'content-type': 'application/json' };
      const askProject: AskProject = (path, body) =>
        ask({ url: new URL(path, base), headers, ...(body !== undefined && { body }) }, rules, signal);
      const itemOf = (day: string, version: string) => ({
        key: keyOf(product, day),
        filename: `${product}-${day}`,
        version,
        open: async () => ({ ...(await openDay(definition, day, askProject)), version, mayBeEmpty: true }),
      });
      return pulledDays(product, definition, timeZone, settings.now())
        .filter(({ day, version }) => !isPulled(product, day, (key) => isDone(key, version)))
        .reverse()
        .slice(0, MAX_PULL_DAYS)
        .map(({ day, version }) => ({
          ...itemOf(day, version),
          ...(hasHours && { parts: hoursOf(day).map((hour) => itemOf(hour, version)) }),
        }));
    },
  };
}

/** The name of a day or hour in the memory of the schedule. */
function keyOf(product: Product, day: string): string {
  return `${product} ${day}`;
}

function hoursOf(day: string): string[] {
  return Array.from({ length: 24 }, (_, hour) => `${day}T${String(hour).padStart(2, '0')}`);
}

/** Tells whether a day is loaded, as a whole or hour by hour. */
function isPulled(product: Product, day: string, isLoaded: (key: string) => boolean): boolean {
  return (
    isLoaded(keyOf(product, day)) ||
    (apis[product].hasHours === true && hoursOf(day).every((hour) => isLoaded(keyOf(product, hour))))
  );
}

interface PulledDay {
  readonly day: string;
  /** Another one from day to day, until it is final. */
  readonly version: string;
}

const dayMs = 24 * 60 * 60 * 1_000;

/** Returns the days from the first that are over, oldest first. */
function pulledDays(
  product: Product,
  { from, overlap_days }: Pick<SourceDefinition<Product>, 'from' | 'overlap_days'>,
  timeZone: string,
  now: Date,
): PulledDay[] {
  // The days of the other two are UTC.
  const zone = product === 'mixpanel' ? timeZone : 'UTC';
  const today = new Intl.DateTimeFormat('sv-SE', { timeZone: zone }).format(now.getTime() - PULL_LAG_MS);
  const count = Math.max(0, (Date.parse(today) - Date.parse(from)) / dayMs);
  return Array.from({ length: count }, (_, at) => {
    const day = new Date(Date.parse(from) + at * dayMs).toISOString().slice(0, 10);
    const isFinal = count - at > overlap_days;
    return { day, version: isFinal ? 'final' : `as of ${today}` };
  });
}

/** Returns how many days of a pull are loaded, and how many are over; `null` for other loads. */
export function pullProgress(
  load: LoadDefinition | undefined,
  timeZone: string,
  now: Date,
  memory: ReadonlyMap<string, string>,
): { readonly days_loaded: number | null; readonly days_over: number | null } {
  const product = productOf(load);
  const definition = product && load?.[product];
  if (!product || !definition) return { days_loaded: null, days_over: null };
  const days = pulledDays(product, definition, timeZone, now);
  const loaded = days.filter(({ day }) => isPulled(product, day, (key) => memory.has(key)));
  return { days_loaded: loaded.length, days_over: days.length };
}

export function productOf(load: LoadDefinition | undefined): Product | null {
  return products.find((each) => load?.[each] !== undefined) ?? null;
}

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/** Opens a day of Mixpanel's raw event export: a line of JSON for each event. */
async function openMixpanelDay(
  { project_id }: SourceDefinition<'mixpanel'>,
  day: string,
  ask: AskProject,
): Promise<OpenItem> {
  const project = project_id === undefined ? '' : `&project_id=${project_id}`;
  const { answer, host } = await ask(
    `/api/2.0/export?from_date=${day}&to_date=${day}&time_in_ms=true${project}`,
  );
  const opened = await openAnswer(answer, host);
  return {
    ...opened,
    hints: { ...opened.hints, format: 'ndjson' },
    async check(end) {
      // An export that fails midway ends with a line such as `terminated early`.
      if (end.trimEnd().endsWith('}')) return;
      throw new SourceFailure('partial_day', `${host} ended the export of ${day} early`, { passing: true });
    },
  };
}

/** Opens a day or an hour of Amplitude's export: a ZIP of gzipped files with a line of JSON for each event. */
async function openAmplitudeDay(_: unknown, day: string, ask: AskProject): Promise<OpenItem> {
  const [start, end] = day.includes('T') ? [day, day] : [`${day}T00`, `${day}T23`];
  const path = `/api/2/export?start=${start}&end=${end}`.replaceAll('-', '');
  const { answer, host } = await ask(path);
  if (answer.status !== 400 && answer.status !== 404) return openAnswer(answer, host);
  await answer.close();
  // It answers 404 for hours without events.
  if (answer.status === 404) return { ...unsent, bytes: Readable.from([]), hints: {} };
  const message = `${host} refuses to export ${day}, perhaps because it has more than 4 GB; let Amplitude export to S3, and load that`;
  throw new SourceFailure(tooLarge, message);
}

const unsent = { version: null, close: async () => undefined };

/** The query of all pages: each goes on behind the last row of the one before. */
const eventsQuery = `select toString(uuid), event, distinct_id, toString(toTimeZone(timestamp, 'UTC')), properties
from events
where timestamp >= toDateTime64({since}, 6, 'UTC') and timestamp < toDateTime64({until}, 6, 'UTC')
  and (timestamp > toDateTime64({since}, 6, 'UTC') or toString(uuid) > {after})
order by timestamp, toString(uuid)
limit ${PULL_PAGE_ROWS}`;

/** Opens a day of PostHog's events, page by page from its query API. */
async function openPosthogDay(
  { project_id }: SourceDefinition<'posthog'>,
  day: string,
  ask: AskProject,
): Promise<OpenItem> {
  const until = new Date(Date.parse(day) + dayMs).toISOString().slice(0, 10);
  const page: ReadPage = async (since, after) => {
    const values = { since, until: `${until} 00:00:00.000000`, after };
    const query = { kind: 'HogQLQuery', query: eventsQuery, values };
    // A cached result would lack what came late.
    const body = JSON.stringify({ query, refresh: 'force_blocking', name: 'sluice pull' });
    return readRows(await ask(`/api/projects/${project_id}/query/`, body));
  };
  // Read before the item is open, so that a refused key ends the run.
  const first = await page(`${day} 00:00:00.000000`, '');
  return { ...unsent, bytes: eventLines(first, page), hints: { format: 'ndjson' } };
}

type EventRow = readonly [uuid: string, event: string, distinctId: string, at: string, properties: unknown];
type ReadPage = (since: string, after: string) => Promise<readonly EventRow[]>;

async function* eventLines(first: readonly EventRow[], page: ReadPage): AsyncGenerator<Uint8Array> {
  let rows = first;
  // Until a page has no rows: the server may give fewer than were asked for.
  for (let last = rows.at(-1); last !== undefined; last = rows.at(-1)) {
    yield Buffer.from(rows.map(eventLine).join(''));
    rows = await page(last[3], last[0]);
  }
}

/** Properties come as a JSON text, which is copied as it is, with every digit. */
function eventLine([uuid, event, distinct_id, timestamp, properties]: EventRow): string {
  const known = JSON.stringify({ uuid, event, distinct_id, timestamp });
  const text = typeof properties === 'string' ? properties : JSON.stringify(properties ?? {});
  return `${known.slice(0, -1)},"properties":${text.replace(/[\r\n]/g, ' ')}}\n`;
}

/** Reads the rows of an answer. @throws SourceFailure */
async function readRows({ answer, host }: Answered): Promise<readonly EventRow[]> {
  const { bytes, close } = await openAnswer(answer, host);
  try {
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of bytes) {
      size += piece.length;
      if (size > MAX_PULL_PAGE_BYTES) throw new SourceFailure('page_too_large', `${host} ${largePage}`);
      pieces.push(piece);
    }
    const { results } = JSON.parse(Buffer.concat(pieces).toString()) as { readonly results?: unknown };
    if (Array.isArray(results) && results.every(isEventRow)) return results;
    throw new SourceFailure('unexpected_answer', `${host} answers without rows of events`);
  } catch (cause) {
    if (cause instanceof SourceFailure) throw cause;
    throw new SourceFailure('unexpected_answer', `${host} answers with no JSON`, { passing: true, cause });
  } finally {
    await close();
  }
}

const largePage = `answers with more than ${MAX_PULL_PAGE_BYTES} bytes for ${PULL_PAGE_ROWS} events; use a batch export to S3`;

function isEventRow(row: unknown): row is EventRow {
  return Array.isArray(row) && row.length === 5 && row.slice(0, 4).every((cell) => typeof cell === 'string');
}
