import { MAX_SEGMENT_CONDITIONS, MAX_SEGMENT_DEPTH } from '../domain/limits.ts';
import { type Keys, Problems, type SegmentProblem, shown } from './problems.ts';
import { readEventCondition } from './read-event.ts';
import { readPropertyCondition } from './read-property.ts';
import { isObject, type JsonObject, member, readList } from './read-values.ts';
import type { Group, Negation, Segment } from './segment.ts';

export type SegmentReading =
  | { readonly segment: Segment; readonly problems: readonly [] }
  | { readonly segment: null; readonly problems: readonly SegmentProblem[] };

const kinds = ['all', 'any', 'not', 'property', 'company_property', 'event'] as const;

/**
 * Reads a definition in the language of docs/segments.md, given as JSON would parse to it. Finds all its problems at once;
 * `root` is what their paths begin with.
 */
export function readSegment(definition: unknown, root = 'definition'): SegmentReading {
  const problems = new Problems(root);
  const segment = readNode(definition, [], 1, problems);
  if (segment !== null && problems.found.length === 0) return { segment, problems: [] };
  return { segment: null, problems: problems.found };
}

function readNode(value: unknown, keys: Keys, depth: number, problems: Problems): Segment | null {
  if (!isObject(value)) {
    problems.note(keys, `must be an object with one of ${kinds.join(', ')}, not ${shown(value)}`);
    return null;
  }
  const given = kinds.filter((kind) => Object.hasOwn(value, kind));
  const [kind] = given;
  if (kind === undefined || given.length > 1) {
    problems.note(
      keys,
      kind === undefined ? `has none of ${kinds.join(', ')}` : `has ${given.join(' and ')}; give one of them`,
    );
    return null;
  }
  switch (kind) {
    case 'all':
    case 'any':
      return readGroup(kind, value, keys, depth, problems);
    case 'not':
      return readNegation(value, keys, depth, problems);
    case 'event':
      return readEventCondition(value, keys, problems);
    default:
      return readPropertyCondition(kind, value, keys, problems);
  }
}

function readGroup(
  kind: Group['kind'],
  object: JsonObject,
  keys: Keys,
  depth: number,
  problems: Problems,
): Group | null {
  if (!isAlone(kind, object, keys, depth, problems)) return null;
  const at = [...keys, kind];
  const list = readList(member(object, kind), at, problems, MAX_SEGMENT_CONDITIONS);
  if (list === null) return null;
  const segments: Segment[] = [];
  for (const [index, item] of list.entries()) {
    if (problems.isFull) return null;
    const segment = readNode(item, [...at, index], depth + 1, problems);
    if (segment !== null) segments.push(segment);
  }
  return { kind, segments };
}

function readNegation(object: JsonObject, keys: Keys, depth: number, problems: Problems): Negation | null {
  if (!isAlone('not', object, keys, depth, problems)) return null;
  const segment = readNode(member(object, 'not'), [...keys, 'not'], depth + 1, problems);
  return segment === null ? null : { kind: 'not', segment };
}

/** Whether a group may stand this deep; notes what stands beside it, too. */
function isAlone(kind: string, object: JsonObject, keys: Keys, depth: number, problems: Problems): boolean {
  for (const key of Object.keys(object)) {
    if (problems.isFull) return false;
    if (key !== kind) problems.note([...keys, key], `cannot stand beside ${kind}`);
  }
  if (depth <= MAX_SEGMENT_DEPTH) return true;
  problems.note(
    keys,
    `is nested too deep: at most ${MAX_SEGMENT_DEPTH} of all, any and not inside one another`,
  );
  return false;
}
