import { pause } from '../patience.ts';
import type { Sql } from '../site/site.ts';
import type { Actor, Stage } from './actor.ts';
import { type BatchFormat, createBatch, layBatch, renderBatch } from './batch.ts';
import { LoadWatch } from './load-watch.ts';
import { ProfileSpace } from './profile-space.ts';

export interface LoadsOptions {
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
