import { pause } from '../patience.ts';
import type { Random } from '../random.ts';
import type { Member, Role } from '../site/member.ts';
import type { Site } from '../site/site.ts';

/** What a fault needs, and whether its target is free at the moment. */
export interface FaultContext {
  readonly site: Site;
  readonly random: Random;
  /** Things that are away at the moment, such as `postgres`. */
  readonly away: Set<string>;
  note(line: string): void;
}

export interface Fault {
  readonly name: string;
  /** How often it is chosen, compared with others. */
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
  context.note(`kill -9 ${member.name} (pid ${member.pid}), back after ${backAfterMs} ms`);
  return occupy(member, async () => {
    await member.end('SIGKILL');
    await pause(backAfterMs);
    member.start();
  });
}

function restart(context: FaultContext, role: Role): Promise<void> | null {
  const member = choose(context, role, ({ mortal }) => mortal);
  if (member === null) return null;
  context.note(`SIGTERM ${member.name} (pid ${member.pid})`);
  return occupy(member, async () => {
    await member.stop(stopMs);
    member.start();
  });
}

function pauseWorker(context: FaultContext): Promise<void> | null {
  const member = choose(context, 'work', () => true);
  if (member === null) return null;
  const ms = context.random.integer(200, longestPauseMs);
  context.note(`SIGSTOP ${member.name} (pid ${member.pid}) for ${ms} ms`);
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
    await postgres.stopHard();
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
  { away, note }: FaultContext,
  what: string,
  line: string,
  work: () => Promise<void>,
): Promise<void> | null {
  if (away.has(what)) return null;
  away.add(what);
  note(line);
  return work().finally(() => away.delete(what));
}

function occupy(member: Member, work: () => Promise<void>): Promise<void> {
  member.busy = true;
  return work().finally(() => {
    member.busy = false;
  });
}
