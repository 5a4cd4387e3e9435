import { describe, expect, it } from 'vitest';
import { CountingLoads } from '../../../../src/domain/undo.ts';
import { ProfileWalk } from '../../../../src/load/undo/walk-back.ts';

type Properties = Record<string, string> | null;

/** A state of a profile, and who made it so; `null` while there is none, `erased` if all of it was deleted. */
type Step = readonly [by: number | null, Properties | 'erased'];

interface Undo {
  readonly of: readonly number[];
  readonly properties?: string[];
}

/** The text of an object with these texts of values, as PostgreSQL writes it. */
const jsonb = (texts: Record<string, string>) =>
  `{${Object.entries(texts)
    .map(([name, text]) => `${JSON.stringify(name)}: ${text}`)
    .join(', ')}}`;

/** Undoes loads, which are numbered like earlier undos, after the steps. */
function undo(steps: readonly Step[], asked: Undo, earlier: Readonly<Record<number, Undo>> = {}) {
  const undoOf = (loadId: number, { of, properties }: Undo) => ({
    loadId,
    undoes: of,
    properties: properties ?? null,
  });
  const undos = Object.entries(earlier).map(([id, of]) => undoOf(Number(id), of));
  const counting = new CountingLoads(undoOf(99, asked), undos);
  const known = new Set([asked, ...Object.values(earlier)].flatMap(({ of }) => counting.rootsOf(of)));
  const walk = new ProfileWalk({ counting, known, madeAt: new Map() });
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
    expect(undo(steps, { of: [7] })).toEqual(restored({ a: '1', b: '3' }, ['b']));
  });

  it('removes a profile that the load made, and only its properties if somebody else touched it', () => {
    const made: Step[] = [
      [null, null],
      [7, { a: '1' }],
    ];
    expect(undo(made, { of: [7] }).does).toBe('remove');
    expect(undo([...made, [null, { a: '1', b: '1' }]], { of: [7] })).toEqual(restored({ b: '1' }));
  });

  it('brings a profile back that the load removed', () => {
    const steps: Step[] = [
      [null, { a: '1' }],
      [7, { a: '2' }],
      [7, null],
    ];
    expect(undo(steps, { of: [7] })).toEqual({ does: 'bring back', to: { a: '1' }, kept: [] });
  });

  it('passes over earlier loads and their undos', () => {
    const steps: Step[] = [
      [null, { a: '0' }],
      [1, { a: '1' }],
      [2, { a: '2' }],
      [3, { a: '1' }],
    ];
    expect(undo(steps, { of: [1] }, { 3: { of: [2] } })).toEqual(restored({ a: '0' }));
  });

  it('of an undo makes its load count again, and the other way round', () => {
    const steps: Step[] = [
      [null, { a: '0' }],
      [1, { a: '1' }],
      [2, { a: '0' }],
      [3, { a: '1' }],
    ];
    const undos = { 2: { of: [1] }, 3: { of: [2] } };
    expect(undo(steps, { of: [1] }, undos)).toEqual(restored({ a: '0' }));
    expect(undo(steps, { of: [3] }, undos)).toEqual(restored({ a: '0' }));
    expect(undo(steps, { of: [2] }, undos).does).toBe('nothing');
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
    expect(undo(steps, { of: [7] })).toEqual(restored(values));
  });

  it('undoes several loads at once, also with changes by others between them', () => {
    const steps: Step[] = [
      [null, { a: '0' }],
      [1, { a: '1' }],
      [null, { a: '5' }],
      [2, { a: '2' }],
    ];
    expect(undo(steps, { of: [1, 2] })).toEqual(restored({ a: '5' }));
  });

  it('takes what an undo had kept because it was covered, once the cover goes, and puts the cover back', () => {
    const steps: Step[] = [
      [null, { a: '0' }],
      [1, { a: '1' }],
      [2, { a: '2' }],
    ];
    const first = { 3: { of: [1] } };
    expect(undo(steps, { of: [2] }, first)).toEqual(restored({ a: '0' }));
    const both = { ...first, 4: { of: [2] } };
    expect(undo([...steps, [4, { a: '0' }]], { of: [4] }, both)).toEqual(restored({ a: '2' }));
  });

  it('removes a profile of which nobody is left who touched it', () => {
    const steps: Step[] = [
      [null, null],
      [1, { a: '1' }],
      [2, { a: '1', b: '2' }],
      [3, { b: '2' }],
    ];
    expect(undo(steps, { of: [2] }, { 3: { of: [1] } }).does).toBe('remove');
  });

  it('brings back what others had set in a removed profile whose maker was undone meanwhile', () => {
    const steps: Step[] = [
      [null, null],
      [1, { a: '1' }],
      [null, { a: '1', b: '2' }],
      [2, null],
    ];
    const undone = undo(steps, { of: [2] }, { 3: { of: [1] } });
    expect(undone).toEqual({ does: 'bring back', to: { b: '2' }, kept: [] });
  });

  it('brings nothing back that was set before a removal that counts', () => {
    const steps: Step[] = [
      [null, { a: '0' }],
      [1, { a: '1' }],
      [2, { a: '0' }],
      [null, null],
      [null, { b: '1' }],
    ];
    expect(undo(steps, { of: [2] }, { 2: { of: [1] } }).does).toBe('nothing');
  });

  it('brings nothing back from before an erasure', () => {
    const steps: Step[] = [
      [null, { a: '1' }],
      [7, { a: '2' }],
      [null, 'erased'],
    ];
    expect(undo(steps, { of: [7] }).does).toBe('nothing');
  });

  it('puts back only the properties that were asked for, then and later, and removes no profile then', () => {
    const steps: Step[] = [
      [null, null],
      [7, { a: '1', b: '1' }],
    ];
    const some = { of: [7], properties: ['a'] };
    expect(undo(steps, some)).toEqual(restored({ b: '1' }));
    const covered: Step[] = [...steps, [8, { a: '2', b: '2' }]];
    expect(undo(covered, { of: [8] }, { 9: some })).toEqual(restored({ b: '1' }));
    expect(undo([...steps, [9, { b: '1' }]], { of: [7] }, { 9: some }).does).toBe('remove');
  });
});
