/* A definition as the builder changes it: the JSON of docs/segments.md, in which groups and conditions are told by their names. */

export type Node = Readonly<Record<string, unknown>>;

export const groupKinds = { all: 'all of these', any: 'any of these', none: 'none of these' } as const;
type GroupKind = keyof typeof groupKinds;

export interface Group {
  readonly kind: GroupKind;
  readonly items: readonly Node[];
}

/** Returns the group that a definition is; `null` if it is a condition. */
export function groupOf(node: Node): Group | null {
  for (const kind of ['all', 'any'] as const) {
    if (Array.isArray(node[kind])) return { kind, items: node[kind] as Node[] };
  }
  if (typeof node['not'] !== 'object' || node['not'] === null) return null;
  const inner = node['not'] as Node;
  const group = groupOf(inner);
  return { kind: 'none', items: group?.kind === 'any' ? group.items : [inner] };
}

export function nodeOf({ kind, items }: Group): Node {
  if (kind !== 'none') return { [kind]: items };
  const [only, ...others] = items;
  return { not: others.length === 0 && only !== undefined ? only : { any: items } };
}

export const subjects = {
  property: 'Property of the user',
  company_property: 'Property of the company',
  event: 'Event',
} as const;
export type Subject = keyof typeof subjects;

export function subjectOf(node: Node): Subject {
  return 'event' in node ? 'event' : 'company_property' in node ? 'company_property' : 'property';
}

export const newCondition: Readonly<Record<Subject, Node>> = {
  property: { property: '', equals: '' },
  company_property: { company_property: '', equals: '' },
  event: { event: '' },
};

/** What is compared with: one value of the property's type, a list of them, text, a number or date, days, or nothing. */
type Operand = 'value' | 'list' | 'text' | 'ordered' | 'days' | 'none';

const operators = {
  equals: ['is', 'value'],
  not_equals: ['is not', 'value'],
  in: ['is one of', 'list'],
  not_in: ['is none of', 'list'],
  contains: ['contains', 'text'],
  not_contains: ['does not contain', 'text'],
  starts_with: ['begins with', 'text'],
  exists: ['is there', 'none'],
  missing: ['is missing', 'none'],
  greater_than: ['is above, after', 'ordered'],
  greater_or_equal: ['is at least, on or after', 'ordered'],
  less_than: ['is below, before', 'ordered'],
  less_or_equal: ['is at most, on or before', 'ordered'],
  in_last_days: ['is within the last days', 'days'],
  not_in_last_days: ['is not within the last days', 'days'],
} as const satisfies Readonly<Record<string, readonly [words: string, operand: Operand]>>;
export type Operator = keyof typeof operators;
export const operatorWords = (Object.keys(operators) as Operator[]).map(
  (name) => [name, operators[name][0]] as const,
);

export const operandOf = (operator: Operator): Operand => operators[operator][1];

/** `exists: false` is shown as an operator of its own. */
export function operatorOf(node: Node): Operator {
  if (node['exists'] === false) return 'missing';
  return (Object.keys(operators) as Operator[]).find((name) => name in node) ?? 'equals';
}

export function operandIn(node: Node): unknown {
  return node[operatorOf(node)];
}

/** Returns the condition with another operator, and the value as far as that takes it. */
export function withOperator(node: Node, subject: string, operator: Operator, type: string): Node {
  const kept = { [subject]: node[subject] };
  if (operator === 'exists' || operator === 'missing') return { ...kept, exists: operator === 'exists' };
  const before = operatorOf(node);
  const text = operandOf(before) === 'none' ? '' : textOf(operandIn(node));
  const operand = operandOf(operator);
  return {
    ...kept,
    [operator]: readValue(operand === 'list' ? text : (text.split('\n')[0] ?? ''), operand, type),
  };
}

/** Lists stand one value a line. */
export function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join('\n');
  return value === undefined ? '' : String(value);
}

/** Reads what was typed. A number that JavaScript would write otherwise stays text, which is compared digit by digit. */
export function readValue(text: string, operand: Operand, type: string): unknown {
  const isNumber = text !== '' && String(Number(text)) === text;
  switch (operand) {
    case 'list':
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => readValue(line, 'value', type));
    case 'ordered':
    case 'days':
      return isNumber ? Number(text) : text;
    case 'value':
      if (type === 'numeric' && isNumber) return Number(text);
      return type === 'boolean' && (text === 'true' || text === 'false') ? text === 'true' : text;
    default:
      return text;
  }
}

/** Tells whether something is still to be filled in. */
export function isComplete(node: Node): boolean {
  const group = groupOf(node);
  if (group !== null) return group.items.length > 0 && group.items.every(isComplete);
  const { where = [] } = node;
  return (
    Object.values(node).every((value) => value !== '' && !(Array.isArray(value) && value.length === 0)) &&
    (where as readonly Node[]).every(isComplete)
  );
}
