import { sql } from 'kysely';
import type { System } from '../../context.ts';
import { CommandFailed } from '../exit-codes.ts';
import { checkRedis } from '../service/check-redis.ts';
import { type Fleet, startFleet } from '../service/fleet.ts';
import { workerEnvironment } from '../service/worker-environment.ts';
import type { Session } from './session.ts';

/** A worker shows its life every 5 seconds; one silent for this long is taken for dead. */
const aliveMs = 15_000;
const checkMs = 3_000;

/** Who does the work of a command that loads. */
export interface Hands {
  /** Processes of our own, or those of a running `sluice start` or `sluice work`. */
  readonly whose: 'own' | 'running';
  stop(): Promise<void>;
  kill(): void;
}

export async function countLiveWorkers({ db }: System): Promise<number> {
  const row = await db
    .selectFrom('workers')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('seen_at', '>', sql<Date>`now() - ${aliveMs} * interval '1 millisecond'`)
    .executeTakeFirstOrThrow();
  return row.count;
}

/**
 * Makes sure that workers run: those that live already, or processes of our own. Those of others are watched, and
 * replaced by our own should they end before we do.
 */
export async function provideWorkers(session: Session, entry: string): Promise<Hands> {
  const { settings, database, system, log } = session;
  // A queue that is away would keep us waiting without a word; the file is worth keeping until it is back.
  const problem = await checkRedis(settings.config);
  if (problem?.away === true) throw new CommandFailed(problem.sentence);
  let fleet: Fleet | null = null;
  const launch = (): void => {
    const environment = {
      ...workerEnvironment(settings.environment, settings.config, database.url),
      // They speak as quietly as the command does.
      LOG_LEVEL: log.level,
      // They are there for the command, and leave schedules and the inbox to those of a service.
      SCHEDULES_FILE: '',
      INBOX_DIR: '',
    };
    fleet = startFleet({ size: Math.max(settings.config.workers, 1), entry, environment, log });
  };
  // On a server that was started just now, what the table shows are workers of the past.
  if (database.embedded !== null || (await countLiveWorkers(system)) === 0) launch();
  const watch = setInterval(() => {
    if (fleet !== null) return clearInterval(watch);
    countLiveWorkers(system).then(
      (count) => {
        if (count === 0 && fleet === null) launch();
      },
      () => undefined,
    );
  }, checkMs);
  return {
    get whose() {
      return fleet === null ? ('running' as const) : ('own' as const);
    },
    async stop() {
      clearInterval(watch);
      await fleet?.stop();
    },
    kill: () => fleet?.kill(),
  };
}
