import { entities } from '../../domain/entity.ts';
import type { MaxErrors } from '../../domain/load.ts';
import { type Field, optional } from '../../operator-file/field.ts';
import { objectOf } from '../../operator-file/object-field.ts';
import { choice } from '../../operator-file/scalar-fields.ts';
import { describeNode } from '../../operator-file/source.ts';

const formats = ['csv', 'ndjson', 'json'] as const;
const actions = ['skip', 'load', 'reject'] as const;

/** Their header → our name. */
const columnMap: Field<Readonly<Record<string, string>>> = {
  schema: { type: 'object', additionalProperties: { type: 'string' } },
  read(node, problems) {
    if (node.kind === 'refused') return undefined;
    if (node.kind !== 'object') {
      const wanted = 'must be pairs such as `Customer ID: user_id`';
      problems.note(node, node.path, `${wanted}, not ${describeNode(node)}`);
      return undefined;
    }
    const map = new Map<string, string>();
    for (const { name, value } of node.members) {
      if (value.kind === 'refused') continue;
      if (value.kind === 'scalar' && typeof value.value === 'string' && value.value !== '') {
        map.set(name, value.value);
      } else problems.note(value, value.path, `must be our name for the column, not ${describeNode(value)}`);
    }
    return Object.fromEntries(map);
  },
};

/** A count, or a share of the records: `5%`. */
const maxErrors: Field<MaxErrors | null> = {
  schema: {},
  read(node, problems) {
    const value = node.kind === 'scalar' ? node.value : null;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return { count: value };
    const share = typeof value === 'string' ? /^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(value.trim()) : null;
    const percent = Number(share?.[1]);
    if (percent <= 100) return { percent };
    if (node.kind === 'refused') return undefined;
    problems.note(
      node,
      node.path,
      `must be a number such as 100, or a share such as 5%, not ${describeNode(node)}`,
    );
    return undefined;
  },
};

/** Something of the given words, or null where it is left out. */
function word<const T extends string>(words: readonly T[]): Field<T | null> {
  return optional<T | null>(choice(words, ''), null);
}

/** A mapping.yaml. */
export const mappingField = objectOf('a mapping', 'How the files beside it are loaded.', {
  map: optional(columnMap, {}),
  entity: word(entities),
  max_errors: optional(maxErrors, null),
  if_duplicate: word(actions),
  format: word(formats),
});
