/** Repeatable numbers from 0 up to 1 (mulberry32): the demo's data are the same every time. */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One of a list; an empty text of an empty one. */
export function pick(list: readonly string[], random: () => number): string {
  return list[Math.floor(random() * list.length)] ?? '';
}
