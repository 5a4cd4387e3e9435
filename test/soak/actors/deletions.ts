import type { Sql } from '../site/site.ts';
import { pause } from '../waiting.ts';
import { type Actor, type Stage, some } from './actor.ts';
import { createBatch, layBatch, renderBatch } from './batch.ts';
import { LoadWatch } from './loads.ts';
import { ProfileSpace } from './profile-space.ts';

/** A deletion as the API shows it. */
interface ShownDeletion {
  readonly status: string;
  readonly counts: { readonly requested: number; readonly deleted: number; readonly not_found: number };
}

const keys = 400;

/**
 * Loads users, tracks events of theirs, and deletes some. Loads and deletions stand in one line, so what must be there is
 * known at every step; events are accepted before their users' deletion is asked for, so they go with them.
 */
export function createDeletions(
  stage: Stage,
  options: { readonly name: string; readonly tenant: number },
): Actor {
  const { name } = options;
  const tenant = stage.tenant(options.tenant);
  const client = stage.client(tenant);
  const random = stage.random(name);
  const space = new ProfileSpace('users', `${name}-`, tenant);
  const watch = new LoadWatch(stage, client);
  /** Ids of events by user, of those users that were not deleted since. */
  const events = new Map<string, string[]>();
  const problems: string[] = [];
  let [loads, deletions, deleted, tracked] = [0, 0, 0, 0];

  async function load(): Promise<void> {
    const mark = `${name}-load-${loads++}`;
    const batch = createBatch(space, 'ndjson', { random, rows: random.integer(10, 300), keys, mark });
    const { path, contentType, bytes } = renderBatch(batch, { gzip: false });
    const headers = { 'content-type': contentType, 'idempotency-key': mark };
    const answer = await client.insist({
      method: 'POST',
      path,
      body: new Uint8Array(bytes),
      headers,
      expected: [200],
    });
    if (answer?.status !== 200) return;
    watch.add((JSON.parse(answer.text) as { job_id: string }).job_id, layBatch(batch));
  }

  async function track(): Promise<void> {
    const known = space.keys();
    for (let number = 0; number < 5 && known.length > 0; number++) {
      const user = random.pick(known);
      const eventId = `${name}-event-${tracked++}`;
      const body = {
        user_id: user,
        event_name: 'Soak deletion',
        event_id: eventId,
        metadata: { id: eventId },
      };
      const answer = await client.insist({ method: 'POST', path: '/v1/track', body, expected: [202] });
      if (answer?.status === 202) events.set(user, [...(events.get(user) ?? []), eventId]);
    }
  }

  async function remove(): Promise<void> {
    const number = deletions++;
    const ids = [
      ...new Set(
        Array.from({ length: random.integer(1, 60) }, () => `${space.prefix}${random.integer(1, keys)}`),
      ),
    ];
    const answer = await client.insist({
      method: 'DELETE',
      path: '/v1/users',
      body: { users: ids },
      headers: { 'idempotency-key': `${name}-deletion-${number}` },
      expected: [202],
    });
    if (answer?.status !== 202) return;
    const { job_id } = JSON.parse(answer.text) as { job_id: string };
    const known = ids.filter((id) => space.has(id)).length;
    for (const id of ids) {
      space.remove(id);
      events.delete(id);
    }
    await finish(job_id, { requested: ids.length, deleted: known, not_found: ids.length - known });
  }

  /** Events that come while a deletion runs might go with it: it is waited for. */
  async function finish(jobId: string, wanted: ShownDeletion['counts']): Promise<void> {
    const deadline = performance.now() + 180_000;
    while (performance.now() < deadline) {
      const answer = await client.once({
        method: 'GET',
        path: `/v1/background_jobs/${jobId}`,
        expected: [200],
      });
      const shown = answer?.status === 200 ? (JSON.parse(answer.text) as ShownDeletion) : null;
      if (shown?.status === 'completed') {
        deleted += shown.counts.deleted;
        const [found, right] = [JSON.stringify(shown.counts), JSON.stringify(wanted)];
        if (found !== right) problem(`deletion ${jobId} came to ${found}, not ${right}`);
        return;
      }
      if (shown?.status === 'failed') return problem(`deletion ${jobId} failed: ${answer?.text}`);
      await pause(150);
    }
    problem(`deletion ${jobId} has not ended`);
  }

  function problem(sentence: string): void {
    stage.journal.trouble(sentence);
    problems.push(sentence);
  }

  return {
    name,
    async run() {
      while (!stage.closing.aborted) {
        await load();
        await track();
        if (random.chance(0.6)) await remove();
        await watch.settle(3);
        await pause(random.integer(200, 1_500), stage.closing);
      }
      await watch.settle(0);
    },
    figures: () => ({ loads, deletions, deleted, tracked, unanswered: client.unanswered }),
    async check(sql: Sql) {
      const rows = await sql<{ id: string; times: number; known: number }>(
        `select coalesce(e.metadata ->> 'id', k.event_id) as id, count(e.event_id)::int as times, count(k.event_id)::int as known
         from (select * from sluice.events where environment_id = $1 and starts_with(event_id, $2)) e
         full join (select * from sluice.event_ids where environment_id = $1 and starts_with(event_id, $2)) k
           using (user_id, event_id)
         group by 1`,
        [tenant.environmentId, `${name}-event-`],
      );
      const stored = new Map(rows.map((row) => [row.id, row]));
      const wanted = new Set([...events.values()].flat());
      const wrong = (say: string, ids: readonly string[]): string[] =>
        ids.length > 0 ? [`${say}: ${some(ids)}`] : [];
      return [
        ...problems,
        ...watch.problems,
        ...(await space.check(sql)),
        ...wrong(
          'events lost',
          [...wanted].filter((id) => !stored.has(id)),
        ),
        ...wrong(
          'events of deleted users',
          [...stored.keys()].filter((id) => !wanted.has(id)),
        ),
        ...wrong(
          'events not there once',
          rows.filter((row) => row.times !== 1 || row.known !== 1).map(({ id }) => id),
        ),
      ];
    },
  };
}
