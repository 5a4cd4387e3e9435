import { test } from 'vitest';
import { report, summary } from '../support/exactness.ts';
import { freePort } from '../support/free-port.ts';
import type { PrivatePostgres } from '../support/private-postgres.ts';
import { RecordSender } from '../support/record-sender.ts';
import { type Counts, expectEachOnce, expectRepeatable } from '../support/records-exactness.ts';
import { type Api, onSite, type Site } from '../support/site.ts';

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

function told(counts: Counts): string {
  const { accepted, refused, refusedButStored, unanswered, unansweredButStored } = counts;
  return `${accepted} records accepted, ${refused} refused (${refusedButStored} of them stored), ${unanswered} without an answer (${unansweredButStored} of them stored)`;
}
