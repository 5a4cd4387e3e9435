import type { Preset } from '../../domain/source.ts';
import type { Recognise } from '../../load/map/foreign.ts';

/**
 * Names by which products are recognised. A record of a product has at least one name from each of
 * the product's groups. If several products match, the first one in this list is used, because its
 * events may also contain names of later products.
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

/**
 * Returns the product of the records, or `null`. Records that also contain names of sluice's own
 * format can only be Userpilot's.
 */
export const recognise: Recognise = (names, isOwn, type) => {
  const isTelling = type === undefined || segmentTypes.has(type);
  const allNames = isTelling ? names : names.filter((name) => name !== 'type');
  // A flattened table may have a column `properties.plan` but no column `properties`.
  const present = new Set(allNames.flatMap((name) => [name, ...name.split('.', 1)]));
  const product = products.find(
    ([preset, ...groups]) =>
      (!isOwn || preset === 'userpilot') && groups.every((group) => group.some((name) => present.has(name))),
  );
  return product?.[0] ?? null;
};
