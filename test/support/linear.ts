import { expect } from 'vitest';

/**
 * Whatever reads bytes of a caller costs no more than so much per byte, whatever they are: twice the input, at most
 * 3 times the time. A new scanner is a line in this table, with the input that is worst for it.
 */
export interface Scanner {
  readonly name: string;
  /** An input of about so many bytes. */
  readonly generate: (bytes: number) => Buffer;
  readonly run: (input: Buffer) => unknown;
}

export const KiB = 1024;
const maxRatio = 3;
/** Other processes share the machine: a measurement is the best of some, and a ratio that is too high is measured again. */
const attempts = 12;
/** What is measured takes at least this long, in milliseconds; or is this large. */
const leastMs = 2;
/** What takes this long is not measured again. */
const hopelessMs = 1_000;
const leastBytes = 64 * KiB;
/** How often a ratio that is too high is measured again, with twice the bytes. */
const mostDoublings = 3;
const mostBytes = 4 * KiB * KiB;

export const repeated = (text: string, head = '') => {
  const unit = Buffer.from(text);
  return (bytes: number): Buffer =>
    Buffer.concat([
      Buffer.from(head),
      Buffer.alloc(Math.max(1, Math.floor(bytes / unit.length)) * unit.length, unit),
    ]);
};

export const numbered =
  (text: (number: number) => string, head = '', tail = '') =>
  (bytes: number): Buffer => {
    const parts = [head];
    for (let length = 0, number = 0; length < bytes; number++) {
      const part = text(number);
      parts.push(part);
      length += part.length;
    }
    return Buffer.from(parts.join('') + tail);
  };

async function cpuMs({ run }: Scanner, input: Buffer): Promise<number> {
  const before = process.cpuUsage();
  await run(input);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/**
 * How the times of 2n and n bytes compare. A few milliseconds are at the mercy of the collector and the compiler: a ratio that is
 * too high is measured again with twice the bytes, which one that is really so only makes plainer.
 */
async function ratioOf(scanner: Scanner): Promise<number> {
  let bytes = leastBytes;
  while (bytes < mostBytes && (await cpuMs(scanner, scanner.generate(bytes))) < leastMs) bytes *= 2;
  for (let doublings = 0; ; doublings++, bytes *= 2) {
    const { ratio, isHopeless } = await compare(scanner, bytes);
    if (ratio <= maxRatio || isHopeless || doublings === mostDoublings) return ratio;
  }
}

/** The best of each; no more is measured once the ratio is low enough. */
async function compare(scanner: Scanner, bytes: number): Promise<{ ratio: number; isHopeless: boolean }> {
  const [single, double] = [scanner.generate(bytes), scanner.generate(2 * bytes)];
  let [singleMs, doubleMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let attempt = 0; attempt < attempts; attempt++) {
    singleMs = Math.min(singleMs, await cpuMs(scanner, single));
    doubleMs = Math.min(doubleMs, await cpuMs(scanner, double));
    if (doubleMs > hopelessMs || (attempt > 0 && doubleMs <= maxRatio * singleMs)) break;
  }
  // Where megabytes take less than what can be measured, nothing is to be compared.
  return { ratio: doubleMs / Math.max(singleMs, leastMs / 2), isHopeless: doubleMs > hopelessMs };
}

export async function expectLinear(scanner: Scanner): Promise<void> {
  expect(await ratioOf(scanner)).toBeLessThanOrEqual(maxRatio);
}
