import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { readStatus } from '../../../src/jobs/jobs.ts';
import { recordOf } from '../../../src/jobs/status.ts';
import { createWatchPool } from '../../../src/postgres/pool.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import { acceptFile, withoutQueue } from '../../support/files/load-file.ts';
import { systemOfFile } from '../../support/servers/system.ts';

const t = await systemOfFile();

test('the status lists runs, and the failure of a run by its job if there is one', async () => {
  const { system } = t;
  const watch = createWatchPool(t.databaseUrl, 'test');
  cleanUpAfter('test', () => watch.end());
  const status = async () => recordOf(await readStatus(watch, await system.figures()), []);
  const secondId = (await t.addEnvironment('second')).environment.environmentId;
  const otherJob = await acceptFile(withoutQueue(system), secondId, 'user_id\na\n');
  await sql`update loads set status = 'failed', ended_at = now(), failure_code = 'file_lost', failure_message = 'gone'
    where job_id = ${otherJob}`.execute(system.db);
  await sql`insert into schedules (environment_id, schedule_name, considered_until, definition)
    values (${secondId}, 'nightly', now(), '{}')`.execute(system.db);
  await sql`insert into schedule_runs (environment_id, schedule_name, due_at, cause, status, definition, ended_at,
      reason_code, reason)
    values (${secondId}, 'nightly', now() - interval '1 h', 'due', 'failed', '{}', now() + interval '1 s', 'source_refused',
        'answers with status 404'),
      (${secondId}, 'nightly', now(), 'due', 'failed', '{}', now() + interval '1 s', 'file_lost', 'gone')`.execute(
    system.db,
  );
  await sql`insert into schedule_run_items (run_id, item, job_id)
    select max(run_id), 'a.csv', ${otherJob} from schedule_runs`.execute(system.db);
  await sql`insert into schedule_runs (environment_id, schedule_name, due_at, cause, definition)
    values (${secondId}, 'nightly', now() - interval '2 h', 'due', '{}')`.execute(system.db);
  expect(await status()).toMatchObject({
    runs: { queued: 1, processing: 0 },
    waiting_runs: 0,
    failures: [
      { environment: 'second', job_id: null, schedule: 'nightly', code: 'source_refused' },
      { job_id: otherJob, code: 'file_lost' },
    ],
    needs: [
      {
        environment: 'second',
        kind: 'schedules_failing',
        subject: 'nightly',
        says: expect.stringMatching(/^Schedule nightly has failed for 60 minutes: gone/),
      },
      { environment: 'second', kind: 'jobs_failed', count: 1, subject: otherJob },
    ],
  });
});
