import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { databaseUrl, runCli, startCli, startService, temporaryFolder } from '../../../acceptance/cli.ts';
import { waitFor } from '../../../support/wait-for.ts';

const validFile = `schedules:
  - name: drop
    cron: "* * * * *"
    load: { files: { pattern: "drop/*.csv" } }
`;

async function makeFolder() {
  const dataDir = await temporaryFolder();
  return { dataDir, env: { SCHEDULES_LOCAL_ROOTS: dataDir, DATABASE_URL: await databaseUrl() } };
}

async function withSchedule() {
  const { dataDir, env } = await makeFolder();
  const file = join(dataDir, 'sluice.schedules.yaml');
  await writeFile(file, validFile.replace('* * * * *', '0 0 1 1 *'));
  await mkdir(join(dataDir, 'default/drop'), { recursive: true });
  const result = await runCli(['schedules', 'apply', file, '--data-dir', dataDir], { env });
  expect(result.code).toBe(0);
  return { dataDir, env };
}

// proves: schedules-apply
test('`sluice schedules apply` applies a file as a whole, and --prune deletes others', async () => {
  const { dataDir, env } = await makeFolder();
  const file = join(dataDir, 'schedules.yaml');
  const apply = (...args: string[]) =>
    runCli(['schedules', 'apply', file, '--data-dir', dataDir, ...args], { env });
  await writeFile(file, validFile.replace('* * * * *', '* * *'));
  const place = `${file}:3:11: schedules[0].cron must have five fields`;
  expect(await apply()).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(place) });
  const json = await apply('--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ problem_count: 1, problems: [{ line: 3, column: 11 }] });
  await writeFile(file, `${validFile}  - { name: weekly, cron: "@weekly", export: {} }\n`);
  const dryRun = await apply('--dry-run', '--json');
  expect(JSON.parse(dryRun.stdout)).toMatchObject({ written: false, added: ['drop', 'weekly'] });
  expect(await apply()).toMatchObject({ code: 0, stdout: '+ drop\n+ weekly\n' });
  expect(JSON.parse((await apply('--json')).stdout)).toMatchObject({ written: false, unchanged: 2 });
  await writeFile(file, validFile.replace('* * * * *', '@daily'));
  expect(await apply()).toMatchObject({ code: 0, stdout: '~ drop: cron\n' });
  expect(await apply('--prune')).toMatchObject({ code: 0, stdout: '- weekly\n' });
  const list = await runCli(['schedules', 'list', '--json', '--data-dir', dataDir], { env });
  expect(JSON.parse(list.stdout)).toMatchObject([{ schedule: 'drop', cron: '@daily' }]);
  const deletion = await runCli(['schedules', 'delete', 'drop', '--json', '--data-dir', dataDir], { env });
  expect(JSON.parse(deletion.stdout)).toEqual({ schedule: 'drop', deleted: true });
});

test('`sluice schedules` lists, runs, repeats and logs a schedule', async () => {
  const { dataDir, env } = await withSchedule();
  const sluice = (...args: string[]) => runCli(['schedules', ...args, '--data-dir', dataDir], { env });
  await startService(dataDir, env);
  const due = ['--due', '2026-01-01T00:00:00Z'];
  await writeFile(join(dataDir, 'default/drop/a.csv'), 'name\nnobody\n');
  const failedRun = await sluice('run', 'drop', '--wait', '--json', ...due);
  expect(failedRun.code).toBe(1);
  expect(JSON.parse(failedRun.stdout)).toMatchObject({
    status: 'failed',
    failure: { error_code: 'unrecognised_columns' },
  });
  await writeFile(join(dataDir, 'default/drop/a.csv'), 'user_id,name\na,Ada\n');
  const repeatedRun = await sluice('run', 'drop', '--wait', '--json', ...due);
  expect(repeatedRun.code).toBe(0);
  expect(JSON.parse(repeatedRun.stdout)).toMatchObject({
    status: 'completed',
    attempts: 2,
    counts: { read: 1, inserted: 1 },
    items: [{ is_new: true }],
  });
  const listing = await sluice('list', '--json');
  expect(JSON.parse(listing.stdout)).toMatchObject([
    { schedule: 'drop', environment: 'default', last_status: 'completed' },
  ]);
  const history = await sluice('history', 'drop');
  expect(history.stdout).toMatch(/drop +default +2026-01-01 00:00:00Z +completed +asked/);
});

// proves: schedule-wait
test('`sluice schedules run --wait` waits for a starting worker, or fails without', async () => {
  const startRun = async () => {
    const { dataDir, env } = await withSchedule();
    const run = startCli(['schedules', 'run', 'drop', '--wait', '--data-dir', dataDir], { env });
    return { run, work: () => startCli(['work', '--data-dir', dataDir], { env }) };
  };
  const withoutWorker = await startRun();
  const withWorker = await startRun();
  await waitFor('no worker', () => withWorker.run.stderr.includes('No worker runs; it waits 15 s'));
  withWorker.work();
  const { code, stdout } = await withWorker.run.finished;
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^status +unchanged$/m) });
  expect(await withoutWorker.run.finished).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('no worker runs. Start one'),
  });
});
