import { expect } from 'vitest';

/**
 * A function that reads bytes from callers. It must need linear time: twice the input may take at
 * most three times as long. To test a new function, add a `Scanner` with its worst input.
 */
export interface Scanner {
  readonly name: string;
  /** Returns an input of about `bytes` bytes. */
  readonly generate: (bytes: number) => Buffer;
  readonly run: (input: Buffer) => unknown;
}

export const KiB = 1024;
const maxRatio = 3;
/**
 * Maximum number of measurements per input. The shortest time counts, because other processes share
 * the machine.
 */
const attempts = 12;
/** Minimum processing time in milliseconds. Inputs that need less time are enlarged. */
const leastMs = 2;
/** Processing time in milliseconds above which an input is not measured again. */
const hopelessMs = 1_000;
const leastBytes = 64 * KiB;
/** A ratio that is too high is measured again with twice as many bytes, at most this many times. */
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
 * Returns the time for 2n bytes, divided by the time for n bytes. The garbage collector and the
 * compiler distort short times, so a high ratio is measured again with twice the bytes.
 */
async function ratioOf(scanner: Scanner): Promise<number> {
  let bytes = leastBytes;
  while (bytes < mostBytes && (await cpuMs(scanner, scanner.generate(bytes))) < leastMs) bytes *= 2;
  let result = await compare(scanner, bytes);
  for (let doublings = 0; doublings < mostDoublings; doublings++) {
    if (result.ratio <= maxRatio || result.isHopeless) break;
    bytes *= 2;
    result = await compare(scanner, bytes);
  }
  return result.ratio;
}

/** Compares the shortest times for the two sizes. Stops measuring once the ratio is low enough. */
async function compare(scanner: Scanner, bytes: number): Promise<{ ratio: number; isHopeless: boolean }> {
  const single = scanner.generate(bytes);
  const double = scanner.generate(2 * bytes);
  let singleMs = Number.POSITIVE_INFINITY;
  let doubleMs = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < attempts; attempt++) {
    singleMs = Math.min(singleMs, await cpuMs(scanner, single));
    doubleMs = Math.min(doubleMs, await cpuMs(scanner, double));
    if (doubleMs > hopelessMs || (attempt > 0 && doubleMs <= maxRatio * singleMs)) break;
  }
  // If even megabytes take less time than can be measured, divides by a minimum time.
  return { ratio: doubleMs / Math.max(singleMs, leastMs / 2), isHopeless: doubleMs > hopelessMs };
}

export async function expectLinear(scanner: Scanner): Promise<void> {
  expect(await ratioOf(scanner)).toBeLessThanOrEqual(maxRatio);
}
