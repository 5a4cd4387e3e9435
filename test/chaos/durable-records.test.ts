import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { report, summary } from '../support/exactness.ts';
import { freePort } from '../support/free-port.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy.ts';
import type { PrivatePostgres } from '../support/private-postgres.ts';
import { startSluice } from '../support/processes.ts';
import { RecordSender } from '../support/record-sender.ts';
import { type Counts, expectEachOnce, expectRepeatable, readStored } from '../support/records-exactness.ts';
import { type Api, onSite, type Site, type Sql } from '../support/site.ts';
import { waitFor } from '../support/wait-for.ts';

/* Single records never meet the queue, so once is enough, with whichever. */
const connections = 64;
const rounds = 2;
/** Between two faults. */
const recordsBetween = 500;
/** It takes two seconds, most of them for a process to start; more where the machine has other work. */
const recoveryMs = 20_000;

// proves: acknowledged
test('what was answered 202 is there exactly once, though API and Postgres are killed again and again', async () => {
  await onRecords(async ({ site, postgres, serve, url }) => {
    let api = await serve();
    const sender = new RecordSender(url, site.key, connections);
    try {
      await sender.untilAccepted(recordsBetween);
      const apiBack: number[] = [];
      const postgresBack: number[] = [];
      for (let round = 0; round < rounds; round++) {
        await api.process.kill('SIGKILL');
        const [back, next] = await Promise.all([sender.untilServed(recoveryMs), serve()]);
        apiBack.push(back);
        api = next;
        await sender.untilAccepted(recordsBetween);

        await postgres.stopImmediately();
        await postgres.start();
        postgresBack.push(await sender.untilServed(recoveryMs));
        await sender.untilAccepted(recordsBetween);
      }
      await sender.stop();
      const counts = await expectEachOnce(site.sql, sender);
      await expectRepeatable(site.sql, sender);
      report(
        `API and Postgres killed ${rounds} times each under ${connections} connections: ${told(counts)}`,
      );
      report(`accepting again after kill -9 and a new start: ${summary(apiBack)}`);
      report(`accepting again after a crash of Postgres, once it runs: ${summary(postgresBack)}`);
    } finally {
      await sender.stop();
      sender.close();
    }
  });
});

test('a commit that Postgres could not confirm is answered 503, and nothing is written twice for it', async () => {
  await behindProxy(async (site, url, proxy) => {
    const sender = new RecordSender(url, site.key, connections);
    try {
      for (let [cuts, tries] = [0, 0]; cuts < rounds; tries++) {
        expect(tries, 'times that nothing was stored without an answer').toBeLessThan(rounds + maxFruitless);
        await sender.untilAccepted(recordsBetween);
        proxy.mute();
        if (await storesWithoutAnswer(site.sql, sender)) cuts++;
        proxy.cut();
      }
      await sender.untilAccepted(recordsBetween);
      await sender.stop();
      const counts = await expectEachOnce(site.sql, sender);
      await expectRepeatable(site.sql, sender);
      expect(counts.refusedButStored).toBeGreaterThan(0);
      expect(counts.unanswered).toBe(0);
      report(`connections to Postgres cut ${rounds} times after the commit: ${told(counts)}`);
    } finally {
      await sender.stop();
      sender.close();
    }
  });
});

const maxFruitless = 8;

/**
 * Whether records are stored and stay without an answer. False where all that is under way are transactions, of batches and of
 * idempotency keys: they never get as far as their COMMIT.
 */
async function storesWithoutAnswer(sql: Sql, sender: RecordSender): Promise<boolean> {
  let before = new Set<string>();
  try {
    await waitFor(
      'records to be stored and to stay without an answer',
      async () => {
        const open = [...(await readStored(sql)).keys()].filter((id) => !sender.answers.has(id));
        const hasWaited = open.some((id) => before.has(id));
        before = new Set(open);
        return hasWaited;
      },
      { timeoutMs: 4_000 },
    );
    return true;
  } catch {
    return false;
  }
}

interface Records {
  readonly site: Site;
  readonly postgres: PrivatePostgres;
  /** Where the API is, whichever process it is. */
  readonly url: string;
  serve(): Promise<Api>;
}

async function onRecords(run: (records: Records) => Promise<void>): Promise<void> {
  const port = await freePort();
  const options = { queue: 'postgres', privatePostgres: true, settings: { PORT: String(port) } } as const;
  await onSite(options, async (site) => {
    const { postgres, serve } = site;
    if (postgres === null) throw new Error('the site has no Postgres of its own');
    await run({ site, postgres, serve, url: `http://127.0.0.1:${port}` });
  });
}

/** An API whose connections to Postgres the test has in its hands. */
async function behindProxy(
  run: (site: Site, url: string, proxy: PostgresProxy) => Promise<void>,
): Promise<void> {
  await onSite({ queue: 'postgres' }, async (site) => {
    const proxy = await startPostgresProxy(site.databaseUrl);
    const folder = await mkdtemp(join(tmpdir(), 'sluice-proxied-'));
    const variables = { DATABASE_URL: proxy.url, DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'warn' };
    const api = startSluice(['serve'], variables);
    try {
      const [, url = ''] = await api.says(/sluice listens on (http:\S+)\. /);
      await run(site, url, proxy);
    } finally {
      await api.kill('SIGKILL');
      await proxy.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
}

function told(counts: Counts): string {
  const { accepted, refused, refusedButStored, unanswered, unansweredButStored } = counts;
  return `${accepted} records accepted, ${refused} refused (${refusedButStored} of them stored), ${unanswered} without an answer (${unansweredButStored} of them stored)`;
}
