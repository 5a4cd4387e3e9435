import { beforeAll, beforeEach, expect, test } from 'vitest';
import {
  acceptFile,
  manualLoad,
  runManually,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { acceptExport } from '../support/servers/exports.ts';
import { runCommand } from '../support/servers/run-command.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();
const sluice = (...args: string[]) => runCommand(t, ...args);
const ids = { load: '', export: '', deletion: '' };
beforeAll(async () => {
  const { system, environment } = t;
  const quiet = withoutQueue(system);
  ids.load = await acceptFile(quiet, environment.environmentId, 'user_id\na\n');
  ids.export = (await acceptExport(system, environment.environmentId)).jobId;
  ids.deletion = (await acceptDeletion(system, environment.environmentId, 'users', ['a', 'b'])).jobId;
});
beforeEach(() => {
  process.exitCode = undefined;
});

const listed = async (...args: string[]) =>
  (JSON.parse(await sluice('jobs', 'list', '--json', ...args)) as { job_id: string; type: string }[]).map(
    ({ job_id, type }) => [job_id, type],
  );

test('jobs list, show and cancel handle loads, exports and deletions', async () => {
  const all = [
    [ids.deletion, 'delete_users'],
    [ids.export, 'export'],
    [ids.load, 'import'],
  ];
  expect(await listed()).toEqual(all);
  expect(await listed('--limit', '2')).toEqual(all.slice(0, 2));
  expect(await listed('--type', 'export')).toEqual([[ids.export, 'export']]);
  const table = await sluice('jobs', 'list');
  for (const [id, type] of all) expect(table).toMatch(new RegExp(`${id} +${type} `));

  expect(await sluice('jobs', 'show', ids.export)).toMatch(/^job id +\S+\n.*status +queued/s);
  expect(await sluice('jobs', 'show', ids.deletion)).toMatch(
    /type +delete_users\n.*deleted: 0, not found: 0/s,
  );
  const shown = await Promise.all(
    [ids.load, ids.export, ids.deletion].map((id) => sluice('jobs', 'show', id, '--json')),
  );
  const types = shown.map((text) => (JSON.parse(text) as { type: string }).type);
  expect(types).toEqual(['import', 'export', 'delete_users']);

  await expect(sluice('jobs', 'cancel', ids.deletion)).rejects.toThrow('A deletion cannot be cancelled');
  await expect(sluice('jobs', 'retry', ids.export)).rejects.toThrow('An export cannot be retried');
  expect(await sluice('jobs', 'cancel', ids.export)).toBe('Cancelled; nothing of it stays.\n');
  expect(JSON.parse(await sluice('jobs', 'cancel', ids.load, '--json'))).toMatchObject({
    status: 'cancelled',
  });
  await expect(sluice('jobs', 'cancel', ids.export)).rejects.toThrow('cancelled already');
  // For a job that has ended, --watch returns immediately. The exit code shows whether the job
  // succeeded.
  await sluice('jobs', 'show', ids.export, '--watch');
  expect(process.exitCode).toBe(1);
  process.exitCode = undefined;
});

// proves: guard-released
test('a held load is listed, and can be released or discarded', async () => {
  const { environment } = await t.addEnvironment('guarded');
  const { environmentId } = environment;
  const jobs = (...args: string[]) => sluice('jobs', ...args, '--env', 'guarded');
  const hold = async (content: string): Promise<string> => {
    const options = { guard: { rows: '2..' } } as const;
    const { jobId, status } = await runManually(
      await startManually(t.system, environmentId, content, options),
    );
    expect(status).toBe('held');
    return jobId;
  };
  const first = await hold('user_id\nheld-1\n');
  expect(await listed('--status', 'held', '--env', 'guarded')).toEqual([[first, 'import']]);
  expect(await jobs('show', first)).toContain('1 row; expected: at least 2');
  await jobs('show', first, '--watch');
  expect(process.exitCode).toBe(1);
  process.exitCode = undefined;
  expect(await jobs('release', first)).toMatch(/ is queued; /);
  expect(JSON.parse(await jobs('release', first, '--json'))).toMatchObject({ job_id: first });
  const load = await runManually(await manualLoad(withoutQueue(t.system), environmentId, first));
  expect(load).toMatchObject({ status: 'completed', held: { decidedBy: { kind: 'command_line' } } });

  const second = await hold('user_id\nheld-2\n');
  expect(await jobs('cancel', second)).toBe('Cancelled; nothing of it stays.\n');
  expect(await jobs('cancel', second)).toBe('Cancelled; nothing of it stays.\n');
  await expect(jobs('release', second)).rejects.toThrow('cancelled, not held');
});

test('status and prune print their results', async () => {
  expect(JSON.parse(await sluice('status', '--json'))).toMatchObject({
    lanes: expect.any(Array),
    exports: { queued: 0, processing: 0 },
    findings: expect.arrayContaining([expect.objectContaining({ check: 'postgres version', status: 'ok' })]),
  });
  expect(await sluice('status')).toMatch(
    /^\d+ checks ok, .* 0 failed\nNo worker is alive\.\nloads +queued: /m,
  );
  expect(process.exitCode).toBe(0);
  expect(JSON.parse(await sluice('prune', '--json'))).toMatchObject({ events: 0, problem: null });
  expect(await sluice('prune')).toMatch(/^Removed:\nreceived files +0\n/);
});

test('status ends with exit code 1 and advice if the database does not answer', async () => {
  const unreachable = ['--database-url', 'postgres://me:s3cret@127.0.0.1:1/x'];
  const printed = await sluice('status', ...unreachable);
  expect(printed).toMatch(/^failed +postgres: .*ECONNREFUSED.* Nothing listens there/m);
  expect(printed).not.toContain('s3cret');
  expect(process.exitCode).toBe(1);
  const { findings } = JSON.parse(await sluice('status', '--json', ...unreachable));
  expect(findings).toContainEqual(expect.objectContaining({ check: 'postgres', status: 'failed' }));
  process.exitCode = undefined;
});

test('jobs show names only the kinds of records in the file', async () => {
  const { environmentId } = (await t.addEnvironment('kinds')).environment;
  const file = 'event_type,event_name,user_id\ntrack,Paid,u\n';
  const { jobId } = await runManually(await startManually(t.system, environmentId, file));
  const shown = await sluice('jobs', 'show', jobId, '--env', 'kinds');
  expect(shown).toMatch(/^counts by kind +track: read: 1, [^;]*rejected: 0$/m);
  const record = JSON.parse(await sluice('jobs', 'show', jobId, '--env', 'kinds', '--json'));
  expect(record).toMatchObject({ counts_by_kind: { track: { read: 1 }, page_view: { read: 0 } } });
});

test('jobs plan shows the changes of a plan, and jobs apply queues it', async () => {
  const { system } = t;
  const other = (await t.addEnvironment('plans')).environment;
  const content =
    '{"user_id":"p","plan":"pro","company_id":"acme"}\n' +
    '{"event_type":"track","event_name":"Paid","user_id":"p","inserted_at":"2026-01-02T03:04:05Z"}\n';
  const { jobId } = await runManually(
    await startManually(system, other.environmentId, content, { plan: true }),
  );
  const env = ['--env', 'plans'];
  const shown = await sluice('jobs', 'plan', jobId, ...env);
  expect(shown).toMatch(/users +1 +0/);
  expect(shown).toMatch(/companies +1 +0/);
  expect(shown).toMatch(/users +plan +1 +0 +0 +0 +new/);
  expect(shown).toMatch(/event +added\n.*\nPaid +1\n\nday +added\n.*\n2026-01-02 +1\n/);
  expect(JSON.parse(await sluice('jobs', 'plan', jobId, ...env, '--json'))).toMatchObject({
    job_id: jobId,
    values: { appear: 1, change: 0, go: 0, change_type: 0 },
  });
  expect(JSON.parse(await sluice('jobs', 'apply', jobId, ...env, '--json'))).toMatchObject({ job_id: jobId });

  await expect(sluice('jobs', 'apply', jobId, ...env)).rejects.toThrow(/is being applied/);
});
