import { readSegment } from '../../segments/read-segment.ts';
import type { Field } from './field.ts';
import { holdsRefused, placeAt, toJson } from './source.ts';

/** A segment's definition: a language of its own, which `readSegment` knows. */
export const definition: Field<object> = {
  schema: { $ref: 'segment.schema.json' },
  read(node, problems) {
    if (holdsRefused(node)) return undefined;
    const value = toJson(node);
    const reading = readSegment(value, node.path);
    for (const { keys, path, message } of reading.problems) {
      problems.note(placeAt(node, keys), path, message);
    }
    return reading.segment === null ? undefined : (value as object);
  },
};
