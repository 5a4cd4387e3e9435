import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, runCli, startCli, startService, temporaryFolder } from './cli.ts';

const right = `schedules:
  - name: drop
    cron: "* * * * *"
    load: { files: { pattern: "drop/*.csv" } }
`;

describe('sluice schedules', () => {
  test('a wrong file is told with its lines, by check and by start, which does not start', async () => {
    const dataDir = await temporaryFolder();
    const file = join(dataDir, 'wrong.yaml');
    await writeFile(file, right.replace('* * * * *', '* * *'));
    const place = `${file}:3:11: schedules[0].cron must have five fields`;
    const checked = await runCli(['schedules', 'check', file]);
    expect(checked).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(place) });
    const json = await runCli(['schedules', 'check', file, '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ problem_count: 1, problems: [{ line: 3, column: 11 }] });
    const started = await runCli(['start', '--data-dir', dataDir], { env: { SCHEDULES_FILE: file } });
    expect(started).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(place) });
    const set = await runCli(['schedules', 'check'], { env: { SCHEDULES_FILE: file } });
    expect(set).toMatchObject({ code: checked.code, stderr: checked.stderr });
    const sample = await runCli(['schedules', 'check', 'docs/samples/schedules.yaml']);
    expect(sample).toMatchObject({ code: 0, stdout: expect.stringContaining('warehouse') });
  });

  test('a schedule is listed, run by a running service, done again when that is asked for, and in the history', async () => {
    const dataDir = await preparedDataDir();
    const file = join(dataDir, 'sluice.schedules.yaml');
    await writeFile(file, right.replace('* * * * *', '0 0 1 1 *'));
    await mkdir(join(dataDir, 'drop'));
    const env = { SCHEDULES_FILE: file };
    const sluice = (...args: string[]) => runCli(['schedules', ...args, '--data-dir', dataDir], { env });
    await startService(dataDir, env);
    const due = ['--due', '2026-01-01T00:00:00Z'];
    await writeFile(join(dataDir, 'drop/a.csv'), 'name\nnobody\n');
    const failed = await sluice('run', 'drop', '--wait', '--json', ...due);
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({ status: 'failed', error_code: 'unrecognised_columns' });
    await writeFile(join(dataDir, 'drop/a.csv'), 'user_id,name\na,Ada\n');
    const again = await sluice('run', 'drop', '--wait', '--json', ...due);
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({
      status: 'completed',
      attempts: 2,
      items: [{ is_new: true }],
    });
    const listed = await sluice('list', '--json');
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { schedule: 'drop', last_status: 'completed', environment_exists: true },
    ]);
    const history = await sluice('history', 'drop');
    expect(history.stdout).toMatch(/drop +default +2026-01-01 00:00:00Z +completed +asked/);
  });

  // proves: schedule-made
  test('schedules are created from a file, changed, listed and deleted by commands; those of the schedules file are not', async () => {
    const dataDir = await preparedDataDir();
    const file = join(dataDir, 'made.yaml');
    const env = { SCHEDULES_LOCAL_ROOTS: dataDir };
    const sluice = (...args: string[]) =>
      runCli(['schedules', ...args, '--data-dir', dataDir, '--json'], { env });
    await writeFile(file, right);
    expect(await sluice('create', file)).toMatchObject({ code: 0 });
    expect(await sluice('create', file)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('choose another name'),
    });
    await writeFile(file, right.replace('* * * * *', '@daily'));
    const changed = await sluice('create', file, '--replace');
    expect(JSON.parse(changed.stdout)).toEqual([{ schedule: 'drop', environment: 'default' }]);
    const listed = JSON.parse((await sluice('list')).stdout) as object[];
    expect(listed).toMatchObject([{ schedule: 'drop', made_by: 'api', cron: '@daily' }]);
    const ofFile = { env: { ...env, SCHEDULES_FILE: file } };
    const refused = await runCli(['schedules', 'delete', 'drop', '--data-dir', dataDir], ofFile);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('in the file') });
    expect(JSON.parse((await sluice('delete', 'drop')).stdout)).toEqual({ schedule: 'drop', deleted: true });
    expect(JSON.parse((await sluice('list')).stdout)).toEqual([]);
    await writeFile(
      file,
      'schedules: [{ name: a, cron: "@daily", load: { http: { url: "https://a.b/?token=x" } } }]',
    );
    expect(await sluice('create', file)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('load.http.url'),
    });
  });

  // proves: schedule-wait
  test('a run that is waited for waits for a worker that is starting too, and says it when none comes', async () => {
    const dataDir = await preparedDataDir();
    const env = { SCHEDULES_FILE: join(dataDir, 'sluice.schedules.yaml') };
    await writeFile(env.SCHEDULES_FILE, right.replace('* * * * *', '0 0 1 1 *'));
    await mkdir(join(dataDir, 'drop'));
    const wait = ['schedules', 'run', 'drop', '--wait', '--data-dir', dataDir];
    const alone = await runCli(wait, { env });
    expect(alone).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('no worker runs. Start one'),
    });
    const waiting = startCli(wait, { env });
    await waitFor('no worker', () => waiting.stderr.includes('No worker runs; it waits 15 s'));
    startCli(['work', '--data-dir', dataDir], { env });
    const { code, stdout } = await waiting.finished;
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^status +unchanged$/m) });
  });
});
