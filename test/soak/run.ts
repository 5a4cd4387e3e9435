import { setMaxListeners } from 'node:events';
import { forgetReplays, holdFirstChunks } from '../support/safeguards.ts';
import type { Actor, Stage } from './actors/actor.ts';
import { createCast } from './cast.ts';
import { Client } from './client.ts';
import { type Inflicted, inflict } from './faults.ts';
import {
  type Invariant,
  ledgerInvariants,
  logsHaveNoBugs,
  noIdleTransaction,
  queueIsDone,
  type Scene,
  stoppedInvariants,
  storeInvariants,
} from './invariants.ts';
import type { Journal } from './journal.ts';
import { Memory } from './memory.ts';
import type { Options } from './options.ts';
import { Random } from './random.ts';
import { type Judged, type Report, renderFigures } from './report.ts';
import { openSite, type Site, type Sql } from './site/site.ts';
import { pause, until } from './waiting.ts';

const progressMs = 10_000;
const memoryMs = 5_000;
/** After the last fault: for what was begun to be answered, and for the ledger to be done. */
const giveUpMs = 300_000;
const stopMs = 40_000;

/** Sets a site up, uses and breaks it for as long as told, and judges what has come of it. */
export async function runSoak(
  folder: string,
  options: Options,
  journal: Journal,
  print: (line: string) => void,
): Promise<Omit<Report, 'folder'>> {
  const site = await openSite(folder, options, journal);
  const [closing, givingUp, over] = [new AbortController(), new AbortController(), new AbortController()];
  // Everybody listens to these, at every pause.
  setMaxListeners(0, closing.signal, over.signal);
  const stage: Stage = {
    site,
    journal,
    minutes: options.minutes,
    closing: closing.signal,
    random: (name) => Random.stream(options.seed, name),
    client: (tenant) =>
      new Client(tenant, site, {
        random: Random.stream(options.seed, 'servers'),
        journal,
        givingUp: givingUp.signal,
      }),
    tenant: (number) => {
      const tenant = site.tenants[number];
      if (tenant === undefined) throw new Error(`there is no environment ${number}`);
      return tenant;
    },
  };
  try {
    journal.write('the site is open');
    if (options.forgetReplays) {
      await forgetReplays(site.sql);
      await holdFirstChunks(site.sql);
    }
    const actors = createCast(stage);
    for (const actor of actors) await actor.prepare?.();
    const faults: Inflicted[] = [];
    const memory = new Memory();
    const watching = Promise.all([
      every(memoryMs, over.signal, () => memory.sample(site.members)),
      every(progressMs, over.signal, () => print(progress(journal, actors, faults))),
    ]);
    const playing = actors.map((actor) =>
      actor
        .run()
        .catch((error: unknown) => journal.trouble(`actor ${actor.name} broke: ${stackOf(error)}`))
        .then(() => journal.write(`${actor.name} is done`)),
    );
    const breaking = options.kills
      ? inflict(
          site,
          {
            random: Random.stream(options.seed, 'faults'),
            journal,
            meanMs: options.faultSeconds * 1_000,
            closing: closing.signal,
          },
          faults,
        )
      : Promise.resolve();
    await pause(options.minutes * 60_000);
    closing.abort();
    journal.write('no new work, no new faults');
    await breaking;
    const timer = setTimeout(() => givingUp.abort(), giveUpMs);
    await Promise.all(playing);
    clearTimeout(timer);
    print(`${journal.seconds.toFixed(0)} s: all actors are done; the end is judged`);
    const invariants = await judge({ site, actors, faults }, journal);
    over.abort();
    await watching;
    invariants.push({ name: 'memory does not grow', problems: memory.problems() });
    return {
      seed: options.seed,
      queue: options.queue,
      minutes: options.minutes,
      passed: invariants.every(({ problems }) => problems.length === 0),
      actors: Object.fromEntries(actors.map((actor) => [actor.name, actor.figures()])),
      faults: countByName(faults),
      invariants,
      memory: memory.slopes(),
    };
  } finally {
    over.abort();
    await site.close();
  }
}

/** In this order: while the service runs, when it has been stopped, and what happened on the way. */
async function judge(scene: Scene, journal: Journal): Promise<Judged[]> {
  const { site, actors } = scene;
  const judged: Judged[] = [
    { name: 'everything comes to an end', problems: await awaitQuiet(site.sql, giveUpMs) },
  ];
  const look = async (invariant: Invariant): Promise<void> => {
    const startedAt = performance.now();
    const problems = await invariant
      .look(scene)
      .catch((error: unknown) => [`could not be looked at: ${stackOf(error)}`]);
    judged.push({ name: invariant.name, problems });
    journal.write(
      `${problems.length === 0 ? 'holds' : 'BROKEN'}: ${invariant.name} (${Math.round(performance.now() - startedAt)} ms)`,
    );
  };
  journal.write('all is quiet');
  for (const actor of actors) await look(ofActor(actor));
  const whileItRuns = [...ledgerInvariants, queueIsDone, noIdleTransaction];
  for (const invariant of whileItRuns) await look(invariant);
  await Promise.all(site.members.map((member) => member.stop(stopMs)));
  for (const invariant of [...stoppedInvariants, ...storeInvariants, logsHaveNoBugs]) await look(invariant);
  judged.push({ name: 'nothing else went wrong on the way', problems: journal.troubles });
  return judged;
}

function ofActor(actor: Actor): Invariant {
  return {
    name: `all is as ${actor.name} left it`,
    look: ({ site }: { site: Site }) => actor.check(site.sql),
  };
}

function progress(journal: Journal, actors: readonly Actor[], faults: readonly Inflicted[]): string {
  const done = actors.map((actor) => `${actor.name} ${Object.values(actor.figures()).slice(0, 2).join('/')}`);
  const inflicted = renderFigures(countByName(faults)) || 'none';
  return `${journal.seconds.toFixed(0)} s: ${done.join(', ')}; faults: ${inflicted}; troubles: ${journal.troubles.length}`;
}

function countByName(faults: readonly Inflicted[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { name } of faults) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

async function every(ms: number, signal: AbortSignal, work: () => void): Promise<void> {
  while (!signal.aborted) {
    await pause(ms, signal);
    if (!signal.aborted) work();
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Counts what the ledger still has to do. */
const open = `
  select 'load ' || job_id || ' is ' || status as what from sluice.loads where status in ('queued', 'processing')
  union all
  select 'export ' || job_id || ' is ' || status from sluice.exports where status in ('queued', 'processing')
  union all
  select 'deletion ' || job_id || ' is ' || status from sluice.deletions where status in ('queued', 'processing')
  union all
  select 'files of export ' || job_id || ' are there' from sluice.exports
  where status in ('failed', 'cancelled') and files_expired_at is null`;

/** Waits until nothing is under way; what still is, in words, if it does not end. */
async function awaitQuiet(sql: Sql, timeoutMs: number): Promise<readonly string[]> {
  let left: readonly { readonly what: string }[] = [];
  await until(
    async () => {
      left = await sql<{ what: string }>(open);
      return left.length === 0 ? true : null;
    },
    { timeoutMs, everyMs: 250 },
  );
  return left.map(({ what }) => what);
}
