import { setTimeout as delay } from 'node:timers/promises';
import { COMMIT_LAG_MS, MAX_TAIL_EVENTS } from '../domain/limits.ts';
import { formatCount, plural } from '../domain/wording.ts';
import { isTransient } from '../postgres/sqlstate.ts';
import { type LatestEventsQuery, type ReadEvent, readLatestEvents } from '../postgres/stores/events.ts';
import { defineCommand } from './define-command.ts';
import { CommandFailed, UsageError } from './errors.ts';
import { parsed, text } from './options.ts';
import { eventLine } from './profiles.ts';
import { listenForStop } from './service/stop-signals.ts';
import { type EnvironmentSession, withEnvironment } from './session.ts';
import type { Terminal } from './terminal.ts';

const everyMs = 1_000;
/** A database that restarts is back within this time. */
const outageMs = 60_000;

const tail = defineCommand({
  name: 'tail',
  summary: 'the latest events, and new ones as they happen',
  description:
    'Prints the latest events, the newest last, and then each new one, until Ctrl-C, which ends it with exit code 0.',
  options: {
    user: text('--user <id>', 'only events of this user'),
    event: text('--event <name>', 'only events of this name'),
    last: parsed('--last <n>', `how many to begin with, ${MAX_TAIL_EVENTS} at most`, parseLast, 10),
  },
  environment: true,
  json: 'print JSON, one event a line, as the API has it',
  details: `It looks once a second at what happened in the last ${COMMIT_LAG_MS / 1_000} seconds. Left out
are events whose own time was longer ago when they came in (files, back-dated
records), and, of more than ${formatCount(MAX_TAIL_EVENTS)} between two looks, the older ones. An event
that is dated ahead is shown when its time has come.`,
  examples: [
    'sluice events tail',
    'sluice events tail --user u1',
    'sluice events tail --event signed_up --json',
  ],
  run: async (invocation) => {
    const { terminal, json, flags } = invocation;
    const { signal } = listenForStop();
    const render = ({ json: event }: ReadEvent): string => (json ? event : eventLine(event));
    await withEnvironment(invocation, (session) =>
      follow(session, terminal, render, {
        userId: flags.user ?? null,
        eventName: flags.event ?? null,
        last: flags.last,
        signal,
      }),
    );
  },
});

function parseLast(given: string): number {
  const last = Number(given);
  if (/^\d{1,4}$/.test(given) && last <= MAX_TAIL_EVENTS) return last;
  throw new UsageError(`--last takes a number from 0 to ${MAX_TAIL_EVENTS}`);
}

interface Followed extends Pick<LatestEventsQuery, 'userId' | 'eventName'> {
  readonly last: number;
  readonly signal: AbortSignal;
}

async function follow(
  { system, environmentId }: EnvironmentSession,
  terminal: Terminal,
  render: (event: ReadEvent) => string,
  { last, signal, ...which }: Followed,
): Promise<void> {
  const look = (withinMs: number | null): Promise<ReadEvent[]> =>
    readLatestEvents(system.db, environmentId, { ...which, withinMs, limit: MAX_TAIL_EVENTS });
  const first = await look(null);
  let seen = new Set(first.map(nameOf));
  for (const event of last === 0 ? [] : first.slice(-last)) terminal.print(render(event));
  for (let seenAt = performance.now(); !signal.aborted && !terminal.closed; ) {
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    try {
      const latest = await look(COMMIT_LAG_MS);
      const unseen = latest.filter((event) => !seen.has(nameOf(event)));
      if (unseen.length === MAX_TAIL_EVENTS) {
        terminal.inform(
          `More than ${plural(MAX_TAIL_EVENTS, 'event')} at once; the older ones are left out.`,
        );
      }
      for (const event of unseen) terminal.print(render(event));
      seen = new Set(latest.map(nameOf));
      seenAt = performance.now();
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (performance.now() - seenAt > outageMs) throw new CommandFailed('The database went away.');
    }
  }
}

/** What tells an event from all others of the environment. */
function nameOf({ at, id }: ReadEvent): string {
  return `${at} ${id}`;
}

export const events = defineCommand({
  name: 'events',
  summary: 'events: follow them as they happen',
  description: 'Reads events back. Those of one user: `sluice users show`; all of them: `sluice export`.',
  examples: ['sluice events tail', 'sluice events tail --user u1 --json'],
  commands: [tail],
});
