import type { Call } from '../client.ts';
import type { Sql } from '../site/site.ts';
import { pause } from '../waiting.ts';
import { type Actor, type Stage, some } from './actor.ts';

/**
 * `event`: with an id of the sender's own, repeated until it is accepted; `keyed`: with an Idempotency-Key, the same;
 * `plain`: with neither, sent once.
 */
const kinds = ['event', 'keyed', 'plain'] as const;
type Kind = (typeof kinds)[number];

/** Events of one kind are numbered from 1. */
interface Sent {
  count: number;
  /** Numbers that were not accepted: few, of which nothing is certain. */
  readonly uncertain: Set<number>;
}

export interface Tracking extends Actor {
  /** Events with an id of their own: accepted so far, and sent so far; the former are there, and no more than the latter. */
  bounds(): { readonly accepted: number; readonly sent: number };
  /** Ids of those events begin with it. */
  readonly prefix: string;
}

const senders = 3;

/** Tracks events, several at a time. */
export function createTrack(
  stage: Stage,
  options: { readonly name: string; readonly tenant: number },
): Tracking {
  const { name } = options;
  const tenant = stage.tenant(options.tenant);
  const client = stage.client(tenant);
  const random = stage.random(name);
  const sent: Readonly<Record<Kind, Sent>> = {
    event: { count: 0, uncertain: new Set() },
    keyed: { count: 0, uncertain: new Set() },
    plain: { count: 0, uncertain: new Set() },
  };

  async function send(): Promise<void> {
    const kind = random.pick(kinds);
    const number = ++sent[kind].count;
    sent[kind].uncertain.add(number);
    const id = `${name}-${kind}-${number}`;
    const call: Call = {
      method: 'POST',
      path: '/v1/track',
      body: {
        user_id: `${name}-user-${number % 50}`,
        event_name: `Soak ${kind}`,
        ...(kind === 'event' && { event_id: id }),
        metadata: { id },
      },
      headers: kind === 'keyed' ? { 'idempotency-key': id } : {},
      expected: [202],
    };
    const answer = kind === 'plain' ? await client.once(call) : await client.insist(call);
    if (answer?.status === 202) sent[kind].uncertain.delete(number);
    // What was accepted is sent again now and then, and must still be there once.
    if (kind !== 'plain' && answer !== null && random.chance(0.05)) await client.insist(call);
  }

  async function keepSending(): Promise<void> {
    while (!stage.closing.aborted) {
      await send();
      await pause(random.integer(0, 60), stage.closing);
    }
  }

  const accepted = (): number =>
    kinds.reduce((sum, kind) => sum + sent[kind].count - sent[kind].uncertain.size, 0);

  return {
    name,
    prefix: `${name}-event-`,
    async run() {
      await Promise.all(Array.from({ length: senders }, keepSending));
    },
    bounds: () => ({ accepted: sent.event.count - sent.event.uncertain.size, sent: sent.event.count }),
    figures: () => ({
      sent: kinds.reduce((sum, kind) => sum + sent[kind].count, 0),
      accepted: accepted(),
      unanswered: client.unanswered,
    }),
    async check(sql: Sql) {
      const problems: string[] = [];
      for (const kind of kinds) {
        const { count, uncertain } = sent[kind];
        const stored = await readNumbers(sql, tenant.environmentId, `${name}-${kind}-`);
        const lost = Array.from({ length: count }, (_, at) => at + 1).filter(
          (number) => !uncertain.has(number) && !stored.has(number),
        );
        const doubled = [...stored].filter(([, times]) => times > 1).map(([number]) => number);
        const surplus = [...stored.keys()].filter((number) => !(number >= 1 && number <= count));
        const say = (what: string, numbers: readonly number[]): void => {
          if (numbers.length > 0) {
            problems.push(
              `${numbers.length} of ${count} ${kind} events ${what}: ${some(numbers.map(String), 10)}`,
            );
          }
        };
        say('accepted and not there', lost);
        say('there more than once', doubled);
        say('that nobody sent', surplus);
      }
      return problems;
    },
  };
}

/** Number of each event below the prefix, with how often it is there. */
async function readNumbers(
  sql: Sql,
  environmentId: number,
  prefix: string,
): Promise<ReadonlyMap<number, number>> {
  const rows = await sql<{ number: number; times: number }>(
    `select substr(metadata ->> 'id', length($2) + 1)::int as number, count(*)::int as times
     from sluice.events where environment_id = $1 and starts_with(metadata ->> 'id', $2) group by 1`,
    [environmentId, prefix],
  );
  return new Map(rows.map(({ number, times }) => [number, times]));
}
