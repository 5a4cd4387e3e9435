import { isRecordKind } from '../domain/entity.ts';
import type { Preset } from '../domain/load.ts';

/*
 * Foreign events are records of another product with an event's name and time. An id alone would load them as profiles, with
 * properties overwritten by the event's columns, so no proposal for them names an id.
 */

type Members = Readonly<Record<string, unknown>>;

/** Records that another product wrote, or that look like events. */
export interface ForeignEvents {
  /** The product whose export files look like this; `null` if none is known. */
  readonly preset: Preset | null;
  /** Advice for a person on how to load them as events. */
  readonly advice: string;
}

/** The most names of one record that are examined, and their greatest depth. */
const MAX_NAMES = 10_000;
const MAX_NAME_DEPTH = 3;

/** Presets, their products, and groups of names: only files of the product have a name from each group. */
const products: readonly (readonly [Preset, string, readonly (readonly string[])[]])[] = [
  ['mixpanel', 'Mixpanel', [['$properties'], ['$distinct_id', '$group_id']]],
  [
    'mixpanel',
    'Mixpanel',
    [['event'], ['properties.time', 'time'], ['properties.distinct_id', 'distinct_id']],
  ],
  ['posthog', 'PostHog', [['event'], ['timestamp'], ['distinct_id', 'properties.distinct_id']]],
  ['amplitude', 'Amplitude', [['event_type'], ['event_time', 'time', 'event_properties']]],
  [
    'segment',
    'Segment or RudderStack',
    [
      ['type'],
      ['userId', 'anonymousId', 'groupId'],
      ['event', 'messageId', 'originalTimestamp', 'timestamp', 'traits', 'properties', 'context'],
    ],
  ],
];
const segmentTypes: ReadonlySet<unknown> = new Set(['identify', 'group', 'track', 'page', 'screen', 'alias']);

const eventName = /^event(?:_?(?:name|type|title|action))?$/;
/** Names of a time; those of a moment come before those that may be of a day. */
const timeNames = [/(?:^|_)(?:time|timestamp|datetime|ts)$/, /(?:^|_)(?:date|at)$/];
const userName =
  /^(?:user|distinct|customer|member|external|user_pseudo|anonymous|device)_?id$|^(?:uid|user)$/;

/** Returns the last part of the name, written as our own names are. */
function plainName(path: string): string {
  return path
    .slice(Math.max(path.lastIndexOf('.'), path.lastIndexOf('/')) + 1)
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_|_$/g, '');
}

/** Tells whether a CSV with these columns holds events of another product, or of none that is known. */
export function foreignColumns(columns: readonly string[]): ForeignEvents | null {
  return isOwn(columns) ? null : recognise(columns, null);
}

/** Does the same for a JSON record. */
export function foreignRecord(record: Members): ForeignEvents | null {
  const kind = record['event_type'];
  if (typeof kind === 'string' && isRecordKind(kind)) return null;
  return recognise(namesOf(record), record);
}

/** Columns of an event file of ours, which needs nothing but an id. */
function isOwn(columns: readonly string[]): boolean {
  return (
    columns.includes('event_type') && ['event_name', 'inserted_at'].some((name) => columns.includes(name))
  );
}

function recognise(names: readonly string[], record: Members | null): ForeignEvents | null {
  const there = new Set(names);
  const product = products.find(
    ([preset, , groups]) =>
      groups.every((group) => group.some((name) => there.has(name))) &&
      (preset !== 'segment' || record === null || segmentTypes.has(record['type'])),
  );
  const event = names.find((name) => eventName.test(plainName(name)));
  const time = timeNames
    .map((form) => names.find((name) => form.test(plainName(name))))
    .find((name) => name !== undefined);
  if (product === undefined && (event === undefined || time === undefined)) return null;
  const preset = product?.[0] ?? null;
  const whose = product === undefined ? 'look like events' : `look like those of ${product[1]}`;
  if (record !== null && preset !== null)
    return {
      preset,
      advice: `the records ${whose}, and an id alone would make profiles of events: load them with preset=${preset}`,
    };
  const asJson = preset === null ? '' : `; or export them as JSON, and load that with preset=${preset}`;
  const advice = `the records ${whose}, and an id alone would make profiles of them: ${asEvents(names, event, time, record === null)}${asJson}`;
  return { preset: null, advice };
}

/** Says how to turn a file without a preset into one of events. */
function asEvents(names: readonly string[], event = '', time = '', isCsv: boolean): string {
  const free = freeName(names);
  const what = `add a ${isCsv ? 'column' : 'key'} "${free}" that says "track" in each record`;
  const user = names.find((name) => userName.test(plainName(name)));
  // A map reaches the keys of a record, and none within them.
  const isNested = !isCsv && [event, time, user ?? ''].some((name) => name.includes('.'));
  if (isNested) return 'write event_type=track, event_name, user_id and inserted_at as keys of each record';
  const pairs = [
    [free, 'event_type'],
    [event, 'event_name'],
    [time, 'inserted_at'],
    [user ?? '', 'user_id'],
  ];
  const map = pairs.filter(([theirs, ours]) => theirs !== '' && theirs !== ours);
  return `${what}, and say map=${JSON.stringify(Object.fromEntries(map))}`;
}

function freeName(names: readonly string[]): string {
  const candidates = ['event_type', 'kind', 'record_kind'];
  return candidates.find((name) => !names.includes(name)) ?? 'kind_of_record';
}

/** Returns the names of a record's members and of those within them, as paths. */
function namesOf(record: Members, within = '', depth = 1, names: string[] = []): string[] {
  for (const [name, value] of Object.entries(record)) {
    if (names.length === MAX_NAMES) break;
    names.push(within + name);
    if (depth < MAX_NAME_DEPTH && typeof value === 'object' && value !== null && !Array.isArray(value))
      namesOf(value as Members, `${within}${name}.`, depth + 1, names);
  }
  return names;
}
