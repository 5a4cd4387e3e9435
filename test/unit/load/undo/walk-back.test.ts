import { describe, expect, it } from 'vitest';
import { ProfileWalk } from '../../../../src/load/undo/walk-back.ts';

type Properties = Record<string, string> | null;

/** A state of a profile, and who made it so; `null` while there is none, `erased` if all of it was deleted. */
type Step = readonly [by: number | null, Properties | 'erased'];

/** The text of an object with these texts of values, as PostgreSQL writes it. */
const jsonb = (texts: Record<string, string>) =>
  `{${Object.entries(texts)
    .map(([name, text]) => `${JSON.stringify(name)}: ${text}`)
    .join(', ')}}`;

/** Undoes loads after the steps. `earlier`: the loads that earlier undos undid, by their numbers. */
function undo(
  steps: readonly Step[],
  loads: readonly number[],
  earlier: Readonly<Record<number, readonly number[]>> = {},
) {
  const known = new Set([...loads, ...Object.values(earlier).flat()]);
  const out = new Set([...known, ...Object.keys(earlier).map(Number)]);
  const walk = new ProfileWalk({ loads: new Set(loads), known, out, madeAt: new Map() });
  let made: number | null = null;
  for (const [index, [by, properties]] of steps.entries()) {
    const [nextBy, next] = steps[index + 1] ?? [null, undefined];
    if (properties !== null && by !== null) made = by;
    if (next === undefined || properties === null || properties === 'erased') continue;
    const isErased = next === 'erased';
    const state = { company: null, made, position: 0, firstSeen: null };
    walk.take({
      ...state,
      by: nextBy,
      removed: isErased || next === null,
      properties: isErased ? null : jsonb(properties),
    });
  }
  const last = steps.at(-1)?.[1] ?? null;
  const now =
    last === null || last === 'erased' ? null : { position: 9, made, properties: jsonb(last), company: null };
  const { does, properties, kept } = walk.end({ now, others: false });
  return { does, to: Object.fromEntries(properties), kept };
}

const restored = (to: Record<string, string>, kept: readonly string[] = []) => ({
  does: 'restore',
  to,
  kept,
});

describe('walking back', () => {
  it('puts back what the load changed and keeps what somebody else changed since', () => {
    const steps: Step[] = [
      [null, { a: '1', b: '1' }],
      [7, { a: '2', b: '2' }],
      [null, { a: '2', b: '3' }],
    ];
    expect(undo(steps, [7])).toEqual(restored({ a: '1', b: '3' }, ['b']));
  });

  it('removes a profile that the load made, and only its properties if somebody else touched it', () => {
    const made: Step[] = [
      [null, null],
      [7, { a: '1' }],
    ];
    expect(undo(made, [7]).does).toBe('remove');
    expect(undo([...made, [null, { a: '1', b: '1' }]], [7])).toEqual(restored({ b: '1' }));
  });

  it('brings a profile back that the load removed', () => {
    const steps: Step[] = [
      [null, { a: '1' }],
      [7, { a: '2' }],
      [7, null],
    ];
    expect(undo(steps, [7])).toEqual({ does: 'bring back', to: { a: '1' }, kept: [] });
  });

  it('passes over earlier loads and their undos', () => {
    const steps: Step[] = [
      [null, { a: '0' }],
      [1, { a: '1' }],
      [2, { a: '2' }],
      [3, { a: '1' }],
    ];
    expect(undo(steps, [1], { 3: [2] })).toEqual(restored({ a: '0' }));
  });

  it('keeps every digit, and values and names of any form', () => {
    const values = {
      a: '12345678901234567890.10',
      'b, {"\\': '{"x": [1, {"y": "}, \\"]"}], "z": {}}',
      c: '"\\\\"',
      d: '[]',
      e: 'null',
    };
    const steps: Step[] = [
      [null, values],
      [7, { f: 'true' }],
    ];
    expect(undo(steps, [7])).toEqual(restored(values));
  });

  it('undoes several loads at once, also with changes by others between them', () => {
    const steps: Step[] = [
      [null, { a: '0' }],
      [1, { a: '1' }],
      [null, { a: '5' }],
      [2, { a: '2' }],
    ];
    expect(undo(steps, [1, 2])).toEqual(restored({ a: '5' }));
  });

  it('leaves nothing of a load that an undone one had covered', () => {
    const steps: Step[] = [
      [null, { a: '0' }],
      [1, { a: '1' }],
      [2, { a: '2' }],
    ];
    expect(undo(steps, [2], { 3: [1] })).toEqual(restored({ a: '0' }));
  });

  it('removes a profile of which nobody is left who touched it', () => {
    const steps: Step[] = [
      [null, null],
      [1, { a: '1' }],
      [2, { a: '1', b: '2' }],
      [3, { b: '2' }],
    ];
    expect(undo(steps, [2], { 3: [1] }).does).toBe('remove');
  });

  it('brings back what others had set in a removed profile whose maker was undone meanwhile', () => {
    const steps: Step[] = [
      [null, null],
      [1, { a: '1' }],
      [null, { a: '1', b: '2' }],
      [2, null],
    ];
    const undone = undo(steps, [2], { 3: [1] });
    expect(undone).toEqual({ does: 'bring back', to: { b: '2' }, kept: [] });
  });

  it('brings nothing back from before an erasure', () => {
    const steps: Step[] = [
      [null, { a: '1' }],
      [7, { a: '2' }],
      [null, 'erased'],
    ];
    expect(undo(steps, [7]).does).toBe('nothing');
  });
});
