import type { Client } from '../client.ts';
import type { Sql } from '../site/site.ts';
import { pause } from '../waiting.ts';
import type { Actor, Stage } from './actor.ts';
import { type BatchFormat, createBatch, type Expected, layBatch, renderBatch } from './batch.ts';
import { ProfileSpace } from './profile-space.ts';

interface LoadsOptions {
  readonly name: string;
  readonly tenant: number;
  readonly entity: 'users' | 'companies';
  readonly formats: readonly BatchFormat[];
  /** Records of a batch, at most. */
  readonly rows: number;
}

const keys = 2_000;
/** Accepted and not ended; more wait until one has. */
const underWay = 4;

/** Uploads files, or sends arrays, one after another, each until it is accepted; they take effect in that order. */
export function createLoads(stage: Stage, options: LoadsOptions): Actor {
  const { name, entity, formats, rows } = options;
  const tenant = stage.tenant(options.tenant);
  const client = stage.client(tenant);
  const random = stage.random(name);
  const space = new ProfileSpace(entity, `${name}-`, tenant);
  const watch = new LoadWatch(stage, client);
  let sent = 0;

  async function send(): Promise<void> {
    const mark = `${name}-${sent++}`;
    const batch = createBatch(space, random.pick(formats), {
      random,
      rows: random.integer(1, rows),
      keys,
      mark,
    });
    const { path, contentType, bytes } = renderBatch(batch, {
      gzip: batch.format !== 'array' && random.chance(0.3),
    });
    const answer = await client.insist({
      method: 'POST',
      path,
      body: new Uint8Array(bytes),
      headers: { 'content-type': contentType, 'idempotency-key': mark },
      expected: [200, 202],
    });
    if (answer === null || answer.status >= 300) return;
    const { job_id } = JSON.parse(answer.text) as { job_id: string };
    watch.add(job_id, layBatch(batch));
  }

  return {
    name,
    async run() {
      while (!stage.closing.aborted) {
        await send();
        await watch.settle(underWay);
        await pause(random.integer(50, 600), stage.closing);
      }
      await watch.settle(0);
    },
    figures: () => ({
      sent,
      ended: watch.ended,
      records: watch.records,
      refused: watch.refused,
      unanswered: client.unanswered,
    }),
    check: async (sql: Sql) => [...watch.problems, ...(await space.check(sql))],
  };
}

/** A load as the API shows it. */
interface ShownLoad {
  readonly status: string;
  readonly total_rows: number;
  readonly completed_rows: number;
  /** `null` unless it waits. */
  readonly queue_position: number | null;
  readonly counts: Readonly<
    Record<'read' | 'inserted' | 'updated' | 'unchanged' | 'superseded' | 'rejected', number>
  >;
  readonly rejects: { readonly count: number; readonly by_code: Readonly<Record<string, number>> };
  readonly failure: { readonly message: string } | null;
}

interface Watched {
  readonly jobId: string;
  readonly expected: Expected;
}

const endedStatuses = ['completed', 'failed', 'cancelled'];
/** A load of which, and before which in its lane, nothing is done for so long hangs, with everything that is done to the service. */
const giveUpMs = 180_000;

/** Loads that were accepted: each must be completed, with the tally that it must have. */
export class LoadWatch {
  readonly problems: string[] = [];
  ended = 0;
  records = 0;
  refused = 0;
  readonly #stage: Stage;
  readonly #client: Client;
  readonly #open: Watched[] = [];

  constructor(stage: Stage, client: Client) {
    this.#stage = stage;
    this.#client = client;
  }

  add(jobId: string, expected: Expected): void {
    this.#open.push({ jobId, expected });
  }

  /** Waits until no more than so many have not ended, in the order in which they came. */
  async settle(most: number): Promise<void> {
    while (this.#open.length > most) {
      const next = this.#open.shift();
      if (next !== undefined) await this.#finish(next);
    }
  }

  async #finish({ jobId, expected }: Watched): Promise<void> {
    const shown = await awaitLoad(this.#client, jobId);
    if (shown === null)
      return void this.#problem(
        `load ${jobId} has not ended, and nothing was done for ${giveUpMs / 1_000} s`,
      );
    this.ended++;
    this.records += shown.counts.read;
    this.refused += shown.counts.rejected;
    if (shown.status !== 'completed') {
      return void this.#problem(`load ${jobId} is ${shown.status}: ${shown.failure?.message}`);
    }
    const wanted = { ...expected, refused: expected.refused.length };
    const { read, inserted, updated, unchanged, superseded, rejected } = shown.counts;
    const found = { read, inserted, known: updated + unchanged, superseded, refused: rejected };
    const [left, right] = [JSON.stringify(found), JSON.stringify(wanted)];
    if (left !== right) this.#problem(`load ${jobId} came to ${left}, not ${right}`);
    await this.#compareRejects(jobId, expected.refused);
  }

  /** Every refused record is reported, under its number. */
  async #compareRejects(jobId: string, wanted: readonly number[]): Promise<void> {
    const answer = await this.#client.insist({
      method: 'GET',
      path: `/v1/background_jobs/${jobId}/rejects`,
      headers: { accept: 'application/x-ndjson' },
      expected: [200],
    });
    if (answer === null) return;
    const lines = answer.text.split('\n').filter((line) => line !== '');
    const found = lines.map((line) => (JSON.parse(line) as { sluice_row: number }).sluice_row);
    if (JSON.stringify(found) !== JSON.stringify(wanted)) {
      this.#problem(
        `load ${jobId} reports refused records ${found.slice(0, 20)}, not ${wanted.slice(0, 20)}`,
      );
    }
  }

  #problem(sentence: string): void {
    this.#stage.journal.trouble(sentence);
    this.problems.push(sentence);
  }
}

/** The load once it has ended; null if it does not. */
export async function awaitLoad(client: Client, jobId: string): Promise<ShownLoad | null> {
  let seen = '';
  for (let movedAt = performance.now(); performance.now() < movedAt + giveUpMs; ) {
    const answer = await client.once({
      method: 'GET',
      path: `/v1/background_jobs/${jobId}`,
      expected: [200],
    });
    if (answer?.status === 200) {
      const shown = JSON.parse(answer.text) as ShownLoad;
      if (endedStatuses.includes(shown.status)) return shown;
      const now = `${shown.status} ${shown.queue_position} ${shown.completed_rows}`;
      if (now !== seen) movedAt = performance.now();
      seen = now;
    }
    await pause(150);
  }
  return null;
}
