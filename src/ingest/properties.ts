import { automaticProperties } from '../domain/automatic-properties.ts';
import type { JsonObject } from '../mapping/json-object.ts';
import type { Fields, ValueRule } from './fields.ts';
import type { Properties } from './records.ts';

/**
 * The properties of a record: those in `metadata`, and the keys beside the documented ones, as in bulk data. Where
 * one is given in both places, `metadata` wins.
 */
export function besideAndWithin(
  fields: Fields,
  beside: JsonObject,
  metadata: unknown,
  path: string,
  rule: ValueRule,
): Properties {
  const under = path === '' ? '' : `${path}.`;
  const within = fields.objectOf(metadata, `${under}metadata`);
  const outer = fields.properties(beside, path, rule);
  const inner = within === null ? null : fields.properties(within, `${under}metadata`, rule);
  if (inner === null) return outer;
  for (const _ in outer) return { ...outer, ...inner };
  return inner;
}

/** Those of a profile: what is kept automatically cannot be set. */
export function profileProperties(
  fields: Fields,
  beside: JsonObject,
  metadata: unknown,
  path: string,
  rule: ValueRule,
): Properties {
  for (const name of automaticProperties) delete beside[name];
  return besideAndWithin(fields, beside, metadata, path, rule);
}
