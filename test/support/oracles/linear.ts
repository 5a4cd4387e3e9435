import { expect } from 'vitest';

/**
 * A reader of bytes of a caller, whose cost per byte must be bounded: twice the input takes at most
 * 3 times the time. A new scanner is a line in the table, with its worst input.
 */
export interface Scanner {
  readonly name: string;
  /** Returns an input of about this many bytes. */
  readonly generate: (bytes: number) => Buffer;
  readonly run: (input: Buffer) => unknown;
}

export const KiB = 1024;
const maxRatio = 3;
/** Other processes share the machine, so the best of several measurements counts. */
const attempts = 12;
/** The least measured time in milliseconds, or `leastBytes`. */
const leastMs = 2;
/** A measurement of this length is not repeated. */
const hopelessMs = 1_000;
const leastBytes = 64 * KiB;
/** Repetitions of a measurement with too high a ratio, each with twice the bytes. */
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
 * Returns the ratio of the times for 2n and n bytes. The garbage collector and the compiler disturb
 * short times, so a high ratio is measured again with twice the bytes.
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

/** Compares the best times, until the ratio is low enough. */
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
  // If megabytes take less than the measurable time, there is nothing to compare.
  return { ratio: doubleMs / Math.max(singleMs, leastMs / 2), isHopeless: doubleMs > hopelessMs };
}

export async function expectLinear(scanner: Scanner): Promise<void> {
  expect(await ratioOf(scanner)).toBeLessThanOrEqual(maxRatio);
}
