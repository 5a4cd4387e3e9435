import { describe, expect, it } from 'vitest';
import { type LoggedProfile, type UndoneLoads, walkBack } from '../../../../src/load/undo/walk-back.ts';

/** A profile from its states, oldest first: who made it so, and its properties; null while there is none. */
function profile(...states: readonly [by: number | null, Record<string, string> | null][]): LoggedProfile {
  const log: NonNullable<LoggedProfile['log']>[number][] = [];
  let made: number | null = null;
  for (const [index, [by, properties]] of states.entries()) {
    const [nextBy, next] = states[index + 1] ?? [null, undefined];
    if (properties !== null && by !== null) made = by;
    if (properties === null || next === undefined) continue;
    log.push({ by: nextBy, made, removed: next === null, properties, company: null, firstSeen: null });
  }
  const last = states.at(-1)?.[1] ?? null;
  const now = last && { position: 9, made, properties: last, company: null };
  return { entity: 'users', id: 'u1', now, log, others: false };
}

function undone(loads: readonly number[], undos: Record<number, readonly number[]> = {}): UndoneLoads {
  const map = Object.entries(undos).map(([undo, of]) => [Number(undo), new Set(of)] as const);
  return { loads: new Set(loads), properties: null, undos: new Map(map), inactive: new Set() };
}

const result = (logged: LoggedProfile, of: UndoneLoads) => {
  const { does, properties, kept } = walkBack(logged, of);
  return { does, to: Object.fromEntries(properties), kept };
};

describe('walking back', () => {
  it('puts back what the load changed and keeps what somebody else changed since', () => {
    const logged = profile([null, { a: '1', b: '1' }], [7, { a: '2', b: '2' }], [null, { a: '2', b: '3' }]);
    expect(result(logged, undone([7]))).toEqual({ does: 'restore', to: { a: '1', b: '3' }, kept: ['b'] });
  });

  it('removes a profile that the load made, and only its properties if somebody else touched it', () => {
    const made: [number | null, Record<string, string> | null][] = [
      [null, null],
      [7, { a: '1' }],
    ];
    expect(result(profile(...made), undone([7])).does).toBe('remove');
    const touched = profile(...made, [null, { a: '1', b: '1' }]);
    expect(result(touched, undone([7]))).toEqual({ does: 'restore', to: { b: '1' }, kept: [] });
  });

  it('brings a profile back that the load removed', () => {
    const logged = profile([null, { a: '1' }], [7, { a: '2' }], [7, null]);
    expect(result(logged, undone([7]))).toEqual({ does: 'bring back', to: { a: '1' }, kept: [] });
  });

  it('passes over a load and its undo', () => {
    const logged = profile([null, { a: '0' }], [1, { a: '1' }], [2, { a: '2' }], [3, { a: '1' }]);
    expect(result(logged, undone([1], { 3: [2] }))).toEqual({ does: 'restore', to: { a: '0' }, kept: [] });
  });

  it('passes over an undo and the undo of it', () => {
    const states = [
      [null, { a: '0' }],
      [1, { a: '1' }],
      [2, { a: '0' }],
      [3, { a: '1' }],
    ] as const;
    const logged = profile(...states.map(([by, of]): [number | null, Record<string, string>] => [by, of]));
    const undos = { 2: [1], 3: [2] };
    expect(result(logged, undone([1], undos))).toEqual({ does: 'restore', to: { a: '0' }, kept: [] });
    expect(result(logged, undone([2], undos)).does).toBe('nothing');
    expect(result(logged, undone([3], undos))).toEqual({ does: 'restore', to: { a: '0' }, kept: [] });
  });

  it('undoes several loads at once, also with changes by others between them', () => {
    const logged = profile([null, { a: '0' }], [1, { a: '1' }], [null, { a: '5' }], [2, { a: '2' }]);
    expect(result(logged, undone([1, 2]))).toEqual({ does: 'restore', to: { a: '5' }, kept: [] });
  });

  it('removes a profile of which nobody is left who touched it', () => {
    const logged = profile([null, null], [1, { a: '1' }], [2, { a: '1', b: '2' }], [3, { b: '2' }]);
    const of = { ...undone([2], { 3: [1] }), inactive: new Set([1]) };
    expect(result(logged, of).does).toBe('remove');
  });

  it('takes what an undo had kept because it was covered, once the cover goes', () => {
    const logged = profile([null, { a: '0' }], [1, { a: '1' }], [2, { a: '2' }]);
    const of = { ...undone([2], { 3: [1] }), inactive: new Set([1]) };
    expect(result(logged, of)).toEqual({ does: 'restore', to: { a: '0' }, kept: [] });
  });

  it('brings back what others had set in a removed profile whose maker was undone meanwhile', () => {
    const logged = profile([null, null], [1, { a: '1' }], [null, { a: '1', b: '2' }], [2, null]);
    const of = { ...undone([2], { 3: [1] }), inactive: new Set([1]) };
    expect(result(logged, of)).toEqual({ does: 'bring back', to: { b: '2' }, kept: [] });
  });

  it('brings back what a load had set, once its undo is undone, although the maker of the profile was undone meanwhile', () => {
    const logged = profile([null, null], [1, {}], [2, { a: '1' }], [3, {}], [4, null]);
    const of = { ...undone([3], { 3: [2], 4: [1] }), inactive: new Set([1]) };
    expect(result(logged, of)).toEqual({ does: 'bring back', to: { a: '1' }, kept: [] });
    expect(result(logged, { ...of, properties: new Set(['a']) }).does).toBe('nothing');
  });

  it('brings nothing back from before an erasure', () => {
    const logged = profile([null, { a: '1' }], [7, null]);
    const erased = { by: null, made: null, removed: true, properties: null, company: null, firstSeen: null };
    expect(result({ ...logged, log: [...(logged.log ?? []), erased] }, undone([7])).does).toBe('nothing');
  });

  it('puts back only the properties that were asked for, and removes no profile then', () => {
    const logged = profile([null, null], [7, { a: '1', b: '1' }]);
    const only = { ...undone([7]), properties: new Set(['a']) };
    expect(result(logged, only)).toEqual({ does: 'restore', to: { b: '1' }, kept: [] });
  });
});
