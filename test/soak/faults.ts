import type { Journal } from './journal.ts';
import type { Random } from './random.ts';
import type { Member, Role } from './site/member.ts';
import type { Site } from './site/site.ts';
import { pause } from './waiting.ts';

/** The needs of a fault, and whether its target is free at the moment. */
interface FaultContext {
  readonly site: Site;
  readonly random: Random;
  /** Things that are away at the moment, such as `postgres`. */
  readonly away: Set<string>;
  write(line: string): void;
}

export interface Fault {
  readonly name: string;
  /** The weight with which it is chosen among the others. */
  readonly weight: number;
  /** Begins it; resolves when all is as before. Null: not possible now. */
  begin(context: FaultContext): Promise<void> | null;
}

const stopMs = 40_000;
/** Longer than a lease of eight seconds, now and then. */
const longestPauseMs = 14_000;

export const faults: readonly Fault[] = [
  { name: 'worker killed', weight: 5, begin: (context) => kill(context, 'work') },
  { name: 'server killed', weight: 3, begin: (context) => kill(context, 'serve') },
  { name: 'worker paused', weight: 4, begin: pauseWorker },
  { name: 'worker stopped', weight: 2, begin: (context) => restart(context, 'work') },
  { name: 'server stopped', weight: 2, begin: (context) => restart(context, 'serve') },
  { name: 'postgres stopped hard', weight: 2, begin: stopPostgres },
  { name: 'redis emptied', weight: 2, begin: emptyRedis },
  { name: 'redis killed', weight: 2, begin: killRedis },
];

function choose(
  { site, random }: FaultContext,
  role: Role,
  wanted: (member: Member) => boolean,
): Member | null {
  const free = site.members.filter((member) => member.role === role && !member.busy && wanted(member));
  return free.length === 0 ? null : random.pick(free);
}

function kill(context: FaultContext, role: Role): Promise<void> | null {
  const member = choose(context, role, ({ mortal }) => mortal);
  if (member === null) return null;
  const backAfterMs = context.random.integer(0, 3_000);
  context.write(`kill -9 ${member.name} (pid ${member.pid}), back after ${backAfterMs} ms`);
  return occupy(member, async () => {
    await member.end('SIGKILL');
    await pause(backAfterMs);
    member.start();
  });
}

function restart(context: FaultContext, role: Role): Promise<void> | null {
  const member = choose(context, role, ({ mortal }) => mortal);
  if (member === null) return null;
  context.write(`SIGTERM ${member.name} (pid ${member.pid})`);
  return occupy(member, async () => {
    await member.stop(stopMs);
    member.start();
  });
}

function pauseWorker(context: FaultContext): Promise<void> | null {
  const member = choose(context, 'work', () => true);
  if (member === null) return null;
  const ms = context.random.integer(200, longestPauseMs);
  context.write(`SIGSTOP ${member.name} (pid ${member.pid}) for ${ms} ms`);
  return occupy(member, async () => {
    member.signal('SIGSTOP');
    await pause(ms);
    member.signal('SIGCONT');
  });
}

function stopPostgres(context: FaultContext): Promise<void> | null {
  const { postgres } = context.site;
  const ms = context.random.integer(0, 4_000);
  return whileAway(context, 'postgres', `SIGQUIT postgres, back after ${ms} ms`, async () => {
    await postgres.stopImmediately();
    await pause(ms);
    await postgres.start();
  });
}

function emptyRedis(context: FaultContext): Promise<void> | null {
  const { redis } = context.site;
  return redis && whileAway(context, 'redis', 'FLUSHALL', () => redis.flush());
}

function killRedis(context: FaultContext): Promise<void> | null {
  const { redis } = context.site;
  const [empty, ms] = [context.random.chance(0.5), context.random.integer(0, 4_000)];
  const line = `kill -9 redis, back ${empty ? 'empty' : 'with its data'} after ${ms} ms`;
  return (
    redis &&
    whileAway(context, 'redis', line, async () => {
      await redis.kill();
      await pause(ms);
      await redis.start({ empty });
    })
  );
}

function whileAway(
  { away, write }: FaultContext,
  what: string,
  line: string,
  work: () => Promise<void>,
): Promise<void> | null {
  if (away.has(what)) return null;
  away.add(what);
  write(line);
  return work().finally(() => away.delete(what));
}

function occupy(member: Member, work: () => Promise<void>): Promise<void> {
  member.busy = true;
  return work().finally(() => {
    member.busy = false;
  });
}

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
  const context: FaultContext = { site, random, away: new Set(), write: (line) => journal.write(line) };
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
