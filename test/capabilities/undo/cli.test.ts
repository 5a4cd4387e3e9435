import { expect, test } from 'vitest';
import { runManually, startManually } from '../../support/files/load-file.ts';
import { runCommand } from '../../support/servers/run-command.ts';
import { systemOfFile } from '../../support/servers/system.ts';

const t = await systemOfFile();

test('`sluice jobs undo` queues an undo or its plan', async () => {
  const load = await runManually(
    await startManually(t.system, t.environment.environmentId, 'user_id,plan,x\nundo1,pro,1\n'),
  );
  const queueUndo = async (...args: string[]) =>
    JSON.parse(await runCommand(t, 'jobs', 'undo', load.jobId, '--json', ...args)) as {
      type: string;
      job_id: string;
    };
  expect(await queueUndo()).toMatchObject({ type: 'undo' });
  const { rows } = await t.system.pool.query<object>(
    "select pass, origin from sluice.loads where type = 'undo' order by load_id",
  );
  expect(rows).toEqual([{ pass: 'load', origin: 'command_line' }]);
  expect(await runCommand(t, 'jobs', 'undo', load.jobId, '--plan')).toMatch(
    /^Job \S+ is queued; it begins as soon as workers run/,
  );
});
