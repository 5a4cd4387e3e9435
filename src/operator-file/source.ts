/** Where something stands in a file: line and column, both from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

interface Placed extends Position {
  /** For a person: `segments[2].title`; empty for the file as a whole. */
  readonly path: string;
}

export interface SourceObject extends Placed {
  readonly kind: 'object';
  readonly members: readonly SourceMember[];
}

/** Stands where its name does. */
export interface SourceMember extends Placed {
  readonly name: string;
  readonly value: SourceNode;
}

export interface SourceList extends Placed {
  readonly kind: 'list';
  readonly items: readonly SourceNode[];
}

export interface SourceScalar extends Placed {
  readonly kind: 'scalar';
  readonly value: string | number | boolean | null;
}

/** What cannot stand in such a file at all; the problem has been noted. */
export interface Refused extends Placed {
  readonly kind: 'refused';
}

/** A value of the file that knows where it stands. */
export type SourceNode = SourceObject | SourceList | SourceScalar | Refused;

/** As JSON would parse to it. */
export function toJson(node: SourceNode): unknown {
  switch (node.kind) {
    case 'object':
      return Object.fromEntries(node.members.map(({ name, value }) => [name, toJson(value)]));
    case 'list':
      return node.items.map(toJson);
    case 'scalar':
      return node.value;
    case 'refused':
      return null;
  }
}

/** Whether anything in it was refused: then what `toJson` makes of it says nothing. */
export function holdsRefused(node: SourceNode): boolean {
  if (node.kind === 'object') return node.members.some(({ value }) => holdsRefused(value));
  if (node.kind === 'list') return node.items.some(holdsRefused);
  return node.kind === 'refused';
}

/** The place that keys and indexes lead to; of what is missing, that of the object which it is missing from. */
export function placeAt(node: SourceNode, keys: readonly (string | number)[]): Position {
  let [at, inside]: [Position, SourceNode] = [node, node];
  for (const key of keys) {
    if (inside.kind === 'object') {
      const found: SourceMember | undefined = inside.members.find(({ name }) => name === key);
      if (found === undefined) return at;
      [at, inside] = [found, found.value];
    } else if (inside.kind === 'list') {
      const found: SourceNode | undefined = inside.items[Number(key)];
      if (found === undefined) return at;
      [at, inside] = [found, found];
    } else return at;
  }
  return at;
}

/** What a message calls a value. */
export function describeNode(node: SourceNode): string {
  if (node.kind === 'object') return 'an object';
  if (node.kind === 'list') return 'a list';
  if (node.kind === 'refused' || node.value === null) return 'nothing';
  if (typeof node.value === 'string') return quoted(node.value);
  return `the ${typeof node.value === 'number' ? 'number ' : ''}${node.value}`;
}

/** A text as a message shows it. */
export function quoted(text: string): string {
  const start = Array.from(text.slice(0, 100)).slice(0, 40).join('');
  return JSON.stringify(start.length === text.length ? text : `${start}…`);
}
