import type { Field, ValueOf } from './field.ts';
import type { Problems } from './problems.ts';
import { describeNode, type SourceMember, type SourceNode } from './source.ts';

export type Shape = Readonly<Record<string, Field<unknown>>>;
export type ObjectOf<S extends Shape> = { readonly [Name in keyof S]: ValueOf<S[Name]> };

/** An object with exactly these fields. `what` is its name in messages: `a segment`. */
export function objectOf<S extends Shape>(what: string, description: string, shape: S): Field<ObjectOf<S>> {
  const fields = Object.entries(shape);
  const required = fields.filter(([, { fallback }]) => fallback === undefined).map(([name]) => name);
  return {
    schema: {
      type: 'object',
      description,
      properties: Object.fromEntries(fields.map(([name, { schema }]) => [name, schema])),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    },
    read(node, problems) {
      if (node.kind === 'refused') return undefined;
      if (node.kind !== 'object') {
        const wanted = `must be an object with ${namesOf(shape)}`;
        problems.note(node, node.path, `${wanted}, not ${describeNode(node)}`);
        return undefined;
      }
      noteUnknown(what, shape, node.members, problems);
      const values = fields.map(
        ([name, field]) => [name, readMember(what, name, field, node, problems)] as const,
      );
      return values.every(([, value]) => value !== undefined)
        ? (Object.fromEntries(values) as ObjectOf<S>)
        : undefined;
    },
  };
}

function noteUnknown(what: string, shape: Shape, members: readonly SourceMember[], problems: Problems): void {
  for (const member of members) {
    if (Object.hasOwn(shape, member.name)) continue;
    problems.note(member, member.path, `is unknown; ${what} has ${namesOf(shape)}`);
  }
}

function readMember<T>(
  what: string,
  name: string,
  field: Field<T>,
  node: Extract<SourceNode, { kind: 'object' }>,
  problems: Problems,
): T | undefined {
  const member = node.members.find((each) => each.name === name);
  if (member !== undefined) return field.read(member.value, problems);
  if (field.fallback === undefined) {
    const path = node.path === '' ? name : `${node.path}.${name}`;
    problems.note(node, path, `is missing; ${what} must have it`);
  }
  return field.fallback;
}

function namesOf(shape: Shape): string {
  return Object.keys(shape).join(', ');
}
