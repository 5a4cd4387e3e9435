import type { Preset } from '../../domain/source.ts';
import type { Recognise } from '../../load/map/foreign.ts';

/**
 * Groups of names by product. Only its files have a name from each group, once the products before it are ruled out: an
 * event may have properties with names that another product gives a meaning.
 */
const products: readonly (readonly [Preset, ...(readonly string[])[]])[] = [
  ['userpilot', ['app_token'], ['event_type', 'user_id', 'company_id']],
  ['mixpanel', ['$distinct_id', '$group_id']],
  ['mixpanel', ['event'], ['time'], ['distinct_id']],
  [
    'segment',
    ['type'],
    ['userId', 'anonymousId', 'groupId'],
    ['event', 'messageId', 'originalTimestamp', 'timestamp', 'traits', 'properties', 'context'],
  ],
  ['posthog', ['event'], ['timestamp'], ['distinct_id', 'properties.distinct_id']],
  ['posthog', ['properties'], ['distinct_ids', 'person_id'], ['distinct_ids', 'distinct_id']],
  ['mixpanel', ['event'], ['properties.time', 'time'], ['properties.distinct_id', 'distinct_id']],
  [
    'amplitude',
    ['event_type'],
    ['event_time', 'time', 'event_properties'],
    ['event_properties', 'user_properties', 'amplitude_id', 'device_id', '$insert_id', 'insert_id'],
  ],
];
const segmentTypes: ReadonlySet<unknown> = new Set(['identify', 'group', 'track', 'page', 'screen', 'alias']);

/** Returns the product whose records these are, or `null`. In our words only Userpilot says what they are. */
export const recognise: Recognise = (names, isOwn, type) => {
  const isTelling = type === undefined || segmentTypes.has(type);
  const telling = isTelling ? names : names.filter((name) => name !== 'type');
  // A program that makes a table writes `properties.plan` in a column, without one for `properties`.
  const there = new Set(telling.flatMap((name) => [name, ...name.split('.', 1)]));
  const product = products.find(
    ([preset, ...groups]) =>
      (!isOwn || preset === 'userpilot') && groups.every((group) => group.some((name) => there.has(name))),
  );
  return product?.[0] ?? null;
};
