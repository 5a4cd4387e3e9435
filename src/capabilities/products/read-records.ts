import type { Preset } from '../../domain/source.ts';
import { isObject, type JsonObject, type ParsedJson, withoutTexts } from '../../formats/json-text.ts';
import { idOf } from '../../load/map/fields.ts';
import { readAmplitude } from './amplitude.ts';
import { readMixpanel } from './mixpanel.ts';
import { readPosthog } from './posthog.ts';
import { firstId, type ProductContext, type ReadProduct } from './record.ts';
import { readSegment } from './segment.ts';
import { readUserpilot } from './userpilot.ts';

export const readProduct: Readonly<Record<Preset, ReadProduct>> = {
  mixpanel: readMixpanel,
  amplitude: readAmplitude,
  segment: readSegment,
  posthog: readPosthog,
  userpilot: readUserpilot,
};

/** Members that contain JSON as a string in Parquet files and some other files. */
const jsonTexts: ReadonlySet<string> = new Set([
  ...['properties', '$properties', 'person_properties', 'event_properties', 'user_properties'],
  ...['group_properties', 'groups', 'set', 'set_once', '$set', '$set_once', 'distinct_ids'],
  ...['traits', 'context', 'metadata'],
]);

/**
 * Reads a record of a product. `ParsedJson` explains the member `marked`, which `parsed` and the
 * result have.
 */
export function readRecords(
  product: Preset,
  parsed: ParsedJson & { readonly value: JsonObject },
  context: ProductContext,
) {
  const { value, marked } = withoutTexts(parsed, jsonTexts);
  return { records: readProduct[product](value as JsonObject, context), marked };
}

const userNames = ['user_id', 'userId', 'distinct_id', '$distinct_id', 'anonymousId', 'device_id'];

/** Returns the user id of a record that cannot be converted, or `null`. */
export function userOf(record: JsonObject): string | null {
  const { properties } = record;
  const members = isObject(properties) ? { ...record, ...properties } : record;
  return idOf(firstId(...userNames.map((name) => members[name])));
}
