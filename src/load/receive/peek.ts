/** The beginning of a stream, and the whole of it still to be read. */
export interface Peeked {
  /** The first `minBytes` or a little more; fewer only if the stream is shorter. */
  readonly head: Buffer;
  /** There is nothing after `head`. */
  readonly isWhole: boolean;
  readonly all: AsyncIterable<Buffer>;
}

/** Looks at the first bytes without taking them. */
export async function peek(source: AsyncIterable<Buffer>, minBytes: number): Promise<Peeked> {
  const iterator = source[Symbol.asyncIterator]();
  const taken: Buffer[] = [];
  let isWhole = false;
  for (let length = 0; length < minBytes; ) {
    const result = await iterator.next();
    if (result.done === true) {
      isWhole = true;
      break;
    }
    taken.push(result.value);
    length += result.value.length;
  }
  const head = taken.length === 1 ? (taken[0] as Buffer) : Buffer.concat(taken);
  return { head, isWhole, all: { [Symbol.asyncIterator]: () => continued(taken, iterator) } };
}

function continued(taken: Buffer[], rest: AsyncIterator<Buffer>): AsyncIterator<Buffer> {
  return {
    next: () => {
      const value = taken.shift();
      return value === undefined ? rest.next() : Promise.resolve({ done: false, value });
    },
    return: async () => {
      await rest.return?.();
      return { done: true, value: undefined };
    },
  };
}
