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
const timeName = /(?:^|_)(?:time|timestamp|datetime|ts|date|at)$/;

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
  const hasBoth = [eventName, timeName].every((form) => names.some((name) => form.test(plainName(name))));
  if (product === undefined && !hasBoth) return null;
  const preset = product?.[0] ?? null;
  const whose = product === undefined ? 'look like events' : `look like those of ${product[1]}`;
  const why = `the records ${whose}, and an id alone would make profiles of events`;
  if (record !== null && preset !== null)
    return { preset, advice: `${why}: load them with preset=${preset}` };
  const asJson = preset === null ? '' : `; or export them as JSON, and load that with preset=${preset}`;
  const what = record === null ? 'column' : 'key';
  const own = 'those of the event, user and time event_name, user_id and inserted_at';
  return {
    preset: null,
    advice: `${why}: add a ${what} event_type that says track in each record, and name ${own}, or say so in map${asJson}`,
  };
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
