import type { Journal } from '../journal.ts';
import { pause } from '../patience.ts';
import type { Random } from '../random.ts';
import type { Site } from '../site/site.ts';
import { type Fault, type FaultContext, faults } from './faults.ts';

/** Something that was done to the site. */
export interface Inflicted {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/**
 * Does one thing after another to the site, until the signal, and writes it down; resolves when everything runs again. Order and kinds follow from the seed; what they hit does not, since it depends on time.
 */
export async function inflict(
  site: Site,
  {
    random,
    journal,
    meanMs,
    closing,
  }: {
    readonly random: Random;
    readonly journal: Journal;
    readonly meanMs: number;
    readonly closing: AbortSignal;
  },
  inflicted: Inflicted[],
): Promise<void> {
  const context: FaultContext = { site, random, away: new Set(), note: (line) => journal.note(line) };
  const recoveries: Promise<void>[] = [];
  const deck = shuffle(faults, random);
  for (let number = 0; ; number++) {
    await pause(meanMs * (0.4 + 1.2 * random.next()), closing);
    if (closing.aborted) break;
    // Each kind once, before chance has its way: short runs see them too.
    const fault = deck[number] ?? pickByWeight(random);
    const recovery = fault.begin(context);
    if (recovery === null) continue;
    inflicted.push({ name: fault.name, at: Date.now() });
    recoveries.push(
      recovery.catch((error: unknown) => journal.trouble(`${fault.name}: no recovery: ${String(error)}`)),
    );
  }
  await Promise.all(recoveries);
}

function pickByWeight(random: Random): Fault {
  return random.pick(faults.flatMap((fault) => Array.from({ length: fault.weight }, () => fault)));
}

function shuffle<T>(list: readonly T[], random: Random): readonly T[] {
  return list
    .map((item) => ({ item, place: random.next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}
