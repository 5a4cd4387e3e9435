import type { Sql } from '../site/site.ts';
import { pause } from '../waiting.ts';
import { type Actor, type Stage, some } from './actor.ts';
import { awaitLoad } from './loads.ts';
import { type Profile, readProfiles } from './profile-space.ts';

/** A load of keys that stand in no other. */
interface Attempted {
  readonly number: number;
  readonly rows: number;
  /** Completed: all of them are there. Otherwise any of them may be. */
  readonly isComplete: boolean;
}

const maxRows = 6_000;

/** Uploads files, cancels them in the middle, and retries half of those. */
export function createCancels(
  stage: Stage,
  options: { readonly name: string; readonly tenant: number },
): Actor {
  const { name } = options;
  const tenant = stage.tenant(options.tenant);
  const client = stage.client(tenant);
  const random = stage.random(name);
  const loads: Attempted[] = [];
  const problems: string[] = [];
  let [sent, cancelled, retried] = [0, 0, 0];

  const act = (jobId: string, verb: 'cancel' | 'retry') =>
    client.insist({
      method: 'POST',
      path: `/v1/background_jobs/${jobId}/${verb}`,
      // Too late for one, or too early for the other.
      expected: [200, 202, 409],
      headers: { 'idempotency-key': `${verb}-${jobId}` },
    });

  async function send(): Promise<void> {
    const number = sent++;
    const rows = random.integer(500, maxRows);
    const lines = Array.from({ length: rows }, (_, row) => `${name}-${number}-${row},${number}.${row}\n`);
    const answer = await client.insist({
      method: 'POST',
      path: '/v1/imports',
      body: `user_id,mark\n${lines.join('')}`,
      headers: { 'content-type': 'text/csv', 'idempotency-key': `${name}-${number}` },
      expected: [200],
    });
    if (answer?.status !== 200) return;
    const { job_id } = JSON.parse(answer.text) as { job_id: string };
    await pause(random.integer(0, 1_500));
    await act(job_id, 'cancel');
    const first = await awaitLoad(client, job_id);
    let last = first;
    if (first?.status === 'cancelled') {
      cancelled++;
      if (random.chance(0.5)) {
        retried++;
        const { status } = (await act(job_id, 'retry')) ?? {};
        last = status !== undefined && status < 300 ? await awaitLoad(client, job_id) : first;
        if (last?.status !== 'completed')
          problem(`load ${job_id} is ${last?.status ?? 'not ended'} after its retry (${status})`);
      }
    } else if (first?.status !== 'completed') {
      problem(`load ${job_id} is ${first?.status ?? 'not ended'} after it was cancelled`);
    }
    if (last?.status === 'completed' && last.counts.read !== rows)
      problem(`load ${job_id} read ${last.counts.read} of ${rows}`);
    loads.push({ number, rows, isComplete: last?.status === 'completed' });
  }

  function problem(sentence: string): void {
    stage.journal.trouble(sentence);
    problems.push(sentence);
  }

  return {
    name,
    async run() {
      while (!stage.closing.aborted) {
        await send();
        await pause(random.integer(500, 3_000), stage.closing);
      }
    },
    figures: () => ({ sent, cancelled, retried, unanswered: client.unanswered }),
    async check(sql: Sql) {
      const wrong: string[] = [];
      for (const { number, rows, isComplete } of loads) {
        const stored = await readProfiles(sql, 'users', `${name}-${number}-`, tenant);
        if (isComplete && stored.size !== rows)
          wrong.push(`load ${number} left ${stored.size} of ${rows} users`);
        const strange = [...stored].filter(([key, profile]) => !isOf(key, profile, number, rows));
        if (strange.length > 0) wrong.push(`load ${number} left ${some(strange.map(([key]) => key))}`);
      }
      return [...problems, ...wrong];
    },
  };

  function isOf(key: string, profile: Profile, number: number, rows: number): boolean {
    const row = Number(key.slice(`${name}-${number}-`.length));
    return (
      row >= 0 && row < rows && profile['mark'] === `${number}.${row}` && Object.keys(profile).length === 1
    );
  }
}
