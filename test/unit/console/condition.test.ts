import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  groupOf,
  isComplete,
  type Node,
  nodeOf,
  operandOf,
  operatorOf,
  operatorWords,
  readValue,
  textOf,
  withOperator,
} from '../../../src/console/client/screens/segments/condition.ts';
import { readSegment } from '../../../src/segments/read-segment.ts';
import { definition, world } from '../../support/random-segments.ts';
import { usersInSegment } from '../../support/segment-evaluator.ts';

/** As if every group was opened and put back. */
function rebuilt(node: Node): Node {
  const group = groupOf(node);
  return group === null ? node : nodeOf({ ...group, items: group.items.map(rebuilt) });
}

test('a definition keeps its meaning in the builder, whatever groups it has', () => {
  fc.assert(
    fc.property(definition, world, (any, people) => {
      const built = rebuilt(any as Node);
      expect(readSegment(built).problems).toEqual([]);
      expect(usersInSegment(built as never, people)).toEqual(usersInSegment(any, people));
    }),
    { numRuns: 300 },
  );
});

test('each operator makes a condition that the server takes, and takes over the value', () => {
  const values = { value: 'x', list: ['x'], text: 'x', ordered: 7, days: 7, none: true } as const;
  for (const [operator] of operatorWords) {
    const from = operandOf(operator) === 'ordered' || operandOf(operator) === 'days' ? 7 : 'x';
    const node = withOperator({ property: 'plan', equals: from }, 'property', operator, 'string');
    expect(readSegment(node).problems).toEqual([]);
    expect(operatorOf(node)).toBe(operator);
    expect(node[operator === 'missing' ? 'exists' : operator]).toEqual(
      operator === 'missing' ? false : values[operandOf(operator)],
    );
  }
});

test.each([
  ['12', 'value', 'numeric', 12],
  ['12', 'value', 'string', '12'],
  ['12.0', 'value', 'numeric', '12.0'],
  ['9007199254740993', 'value', 'numeric', '9007199254740993'],
  ['true', 'value', 'boolean', true],
  ['true', 'value', 'string', 'true'],
  ['a\nb, c\n', 'list', 'string', ['a', 'b, c']],
  ['1\nx', 'list', 'numeric', [1, 'x']],
  ['2026-11-20', 'ordered', 'date', '2026-11-20'],
  ['-0.5', 'ordered', 'string', -0.5],
  ['', 'days', 'string', ''],
] as const)('%j as a %s of a %s property is %j', (text, operand, type, value) => {
  expect(readValue(text, operand, type)).toEqual(value);
  expect(readValue(textOf(value), operand, type)).toEqual(value);
});

test('a definition is counted once nothing is left to fill in', () => {
  for (const [node, complete] of [
    [{ property: '', equals: 'x' }, false],
    [{ property: 'plan', equals: '' }, false],
    [{ property: 'plan', in: [] }, false],
    [{ property: 'plan', exists: false }, true],
    [{ all: [] }, false],
    [{ not: { any: [{ event: '' }] } }, false],
    [{ event: 'paid', where: [{ property: 'amount', greater_than: '' }] }, false],
    [{ all: [{ event: 'paid' }, { property: 'plan', equals: 'pro' }] }, true],
  ] as const) {
    expect([node, isComplete(node)]).toEqual([node, complete]);
  }
});
