import type { Field } from '../../operator-file/field.ts';
import { holdsRefused, placeAt, toJson } from '../../operator-file/source.ts';
import { readSegment } from '../../segments/read-segment.ts';

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
