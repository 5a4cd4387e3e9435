import type { Field } from './field.ts';
import type { Problems } from './problems.ts';
import { describeNode, quoted, type SourceNode } from './source.ts';

export interface TextRule {
  readonly maxChars: number;
  /** For people, in editors. */
  readonly description: string;
  /** Which texts are allowed, and the same in words. */
  readonly pattern?: readonly [pattern: string, words: string];
  /** Of UTF-8, where that is what counts elsewhere. */
  readonly maxBytes?: number;
}

/** One line: control characters would upset a terminal, and none is meant. */
const oneLine = [
  '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
  'must be one line, without control characters',
] as const;

/** 1 to `maxChars` characters. */
export function text({ maxChars, description, pattern = oneLine, maxBytes }: TextRule): Field<string> {
  const [allowed, words] = pattern;
  const regex = new RegExp(allowed, 'u');
  return {
    schema: { type: 'string', description, minLength: 1, maxLength: maxChars, pattern: allowed },
    read(node, problems) {
      if (node.kind === 'refused') return undefined;
      const value = node.kind === 'scalar' ? node.value : null;
      if (typeof value !== 'string')
        return refuse(node, problems, `must be text, not ${describeNode(node)}${cure(value)}`);
      const chars = Array.from(value).length;
      if (chars === 0) return refuse(node, problems, 'is empty');
      if (chars > maxChars)
        return refuse(node, problems, `has ${chars} characters; at most ${maxChars} are allowed`);
      if (!regex.test(value)) return refuse(node, problems, `${words}; it is ${quoted(value)}`);
      const bytes = maxBytes === undefined ? 0 : Buffer.byteLength(value);
      if (maxBytes !== undefined && bytes > maxBytes) {
        return refuse(node, problems, `has ${bytes} bytes; at most ${maxBytes} are allowed`);
      }
      return value;
    },
  };
}

/** true or false. */
export function flag(description: string): Field<boolean> {
  return {
    schema: { type: 'boolean', description },
    read(node, problems) {
      if (node.kind === 'scalar' && typeof node.value === 'boolean') return node.value;
      return refuse(node, problems, `must be true or false, not ${describeNode(node)}`);
    },
  };
}

/** One of a few words. */
export function choice<const T extends string>(words: readonly T[], description: string): Field<T> {
  return {
    schema: { type: 'string', description, enum: words },
    read(node, problems) {
      const found = node.kind === 'scalar' ? words.find((word) => word === node.value) : undefined;
      return found ?? refuse(node, problems, `must be ${words.join(' or ')}, not ${describeNode(node)}`);
    },
  };
}

/** A whole number. */
export function wholeNumber(description: string, least: number, most: number): Field<number> {
  return {
    schema: { type: 'integer', description, minimum: least, maximum: most },
    read(node, problems) {
      const value = node.kind === 'scalar' ? node.value : null;
      if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most)
        return value;
      const rule = `must be a whole number from ${least} to ${most}`;
      return refuse(node, problems, `${rule}, not ${describeNode(node)}`);
    },
  };
}

/** Numbers and the like become text by quoting them. */
function cure(value: string | number | boolean | null): string {
  return typeof value === 'number' || typeof value === 'boolean' ? '; put it in quotes' : '';
}

function refuse(node: SourceNode, problems: Problems, what: string): undefined {
  // What is refused as such has been noted.
  if (node.kind !== 'refused') problems.note(node, node.path, what);
}
