import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createProfileFile, oracleOf } from '../support/files/profile-file.ts';
import { expectExact, progressed, report } from '../support/oracles/exactness.ts';
import { inHouse, seconds } from '../support/servers/house.ts';
import { signalPostmaster } from '../support/servers/private-postgres.ts';
import { waitFor } from '../support/wait-for.ts';

const file = createProfileFile({ rows: 40_000, seed: 5 });
const table = oracleOf(file);

test('a service restarts its killed embedded Postgres, continues after all its processes were killed, and is exact', async () => {
  await inHouse(async (house) => {
    const { process, api } = await house.start();
    const jobId = await api.upload(file.bytes);
    for (const [share, signal] of [
      [0.2, 'SIGQUIT'],
      [0.4, 'SIGKILL'],
    ] as const) {
      await progressed(house.sql, jobId, share);
      const untilEnded = await signalPostmaster(join(house.dataDir, 'postgres'), signal);
      await untilEnded();
      const killedAt = performance.now();
      await waitFor('the service to answer again', async () => {
        const { status } = await api.fetch(`/v1/background_jobs/${jobId}`);
        expect([200, 503]).toContain(status);
        return status === 200;
      });
      report(`embedded Postgres ${signal}: the API is back after ${seconds(killedAt)} s`);
    }
    await progressed(house.sql, jobId, 0.6);
    // The postmaster has its own process group, so it is killed separately.
    await signalPostmaster(join(house.dataDir, 'postgres'), 'SIGKILL');
    await process.killGroup();
    const killedAt = performance.now();
    await house.start();
    const startedAt = performance.now();
    const load = await expectExact(house.sql, jobId, file, table);
    report(
      `whole service killed: listening ${seconds(killedAt, startedAt)} s after the kill, load done ${seconds(startedAt)} s later (${load.seconds.toFixed(1)} s in all)`,
    );
  });
});
