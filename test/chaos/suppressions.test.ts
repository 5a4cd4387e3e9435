import { describe, expect, test } from 'vitest';
import { report } from '../support/exactness.ts';
import { type Api, oneQueue, onSite, type Sql } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

/** Every second person goes. */
const persons = Array.from({ length: 4_000 }, (_, at) => `person-${at}`);
const gone = persons.filter((_, at) => at % 2 === 0);
const lines = persons.flatMap((user_id) => [
  { event_type: 'identify_user', user_id, metadata: { a: 1 } },
  ...[1, 2, 3].map((each) => ({ event_type: 'track', user_id, event_name: `came ${each}` })),
]);
const kills = 4;

async function send(api: Api, path: string, method: 'POST' | 'DELETE', body: Buffer | object) {
  const isFile = Buffer.isBuffer(body);
  return api.fetch(path, {
    method,
    headers: { 'content-type': isFile ? 'application/x-ndjson' : 'application/json' },
    body: isFile ? new Uint8Array(body) : JSON.stringify(body),
  });
}

async function ask(api: Api, path: string, method: 'POST' | 'DELETE', body: Buffer | object) {
  const response = await send(api, path, method, body);
  const text = await response.text();
  expect([200, 202], text).toContain(response.status);
  return (JSON.parse(text) as { job_id: string }).job_id;
}

describe.concurrent.each(oneQueue('redis'))('with the queue on %s', (queue) => {
  // proves: suppressed, acknowledged
  test('nobody of a deletion is left though kill -9 meets workers and server while it runs and their records keep coming, and nobody else is missed', () =>
    onSite({ queue }, async (site) => {
      const { sql } = site;
      let api = await site.serve();
      await site.workers(2);
      const file = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      await ended(sql, 'loads', await ask(api, '/v1/imports', 'POST', file));
      await site.killWorkers();
      const deletion = await ask(api, '/v1/users', 'DELETE', { users: gone, suppress: true });
      let isOver = false;
      const acknowledged = new Set<string>();
      let refused = 0;
      const sender = async (name: string): Promise<void> => {
        for (let at = 0; !isOver; at++) {
          const of = persons[(at * 7) % persons.length] as string;
          const event = { user_id: of, event_name: name, event_id: `${name}-${at}` };
          // A server that is killed answers nobody.
          const answer = await send(api, '/v1/track', 'POST', event).catch(() => null);
          if (answer?.status === 202) acknowledged.add(event.event_id);
          else if (answer?.status === 400) refused++;
          await answer?.text().catch(() => '');
        }
      };
      const senders = ['s1', 's2', 's3'].map(sender);
      for (let kill = 0; kill < kills; kill++) {
        const before = await done(sql);
        await site.workers(2);
        await waitFor(
          'the deletion to get on',
          async () => (await done(sql)) > Math.min(before, gone.length) || null,
          {
            everyMs: 1,
          },
        );
        if (kill % 2 === 1) await api.process.kill('SIGKILL');
        await site.killWorkers();
        await site.expireLeases();
        if (kill % 2 === 1) api = await site.serve();
        report(`kill -9 of a deletion after ${await done(sql)} of ${gone.length}, ${queue}`);
      }
      const late = await ask(api, '/v1/imports', 'POST', file);
      await site.workers(2);
      await ended(sql, 'deletions', deletion);
      await ended(sql, 'loads', late);
      isOver = true;
      await Promise.all(senders);
      expect(refused).toBeGreaterThan(0);
      const of = (table: string) => `select user_id from sluice.${table} where user_id = any($1)`;
      for (const table of ['users', 'events', 'event_ids']) expect(await sql(of(table), [gone])).toEqual([]);
      expect(await sql('select user_id from sluice.users')).toHaveLength(persons.length - gone.length);
      const kept = await sql<{ id: string }>(
        `select event_id as id from sluice.event_ids where event_id like 's%'`,
      );
      const stored = new Set(kept.map(({ id }) => id));
      const stays = [...acknowledged].filter((id) => ((Number(id.slice(3)) * 7) % persons.length) % 2 === 1);
      expect(stays.filter((id) => !stored.has(id))).toEqual([]);
    }));
});

/** How many ids of the deletion have an outcome; more than it has when it has ended. */
async function done(sql: Sql): Promise<number> {
  const [row] = await sql<{ done: number }>(
    `select ids_deleted + ids_not_found + (ended_at is not null)::int as done from sluice.deletions`,
  );
  return row?.done ?? 0;
}

async function ended(sql: Sql, table: 'loads' | 'deletions', jobId: string): Promise<void> {
  const job = await waitFor(`job ${jobId} to end`, async () => {
    const [row] = await sql<object>(
      `select status, failure_message as failure from sluice.${table}
         where job_id = $1 and status not in ('queued', 'processing')`,
      [jobId],
    );
    return row ?? null;
  });
  expect(job).toEqual({ status: 'completed', failure: null });
}
