import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { preparedDataDir, runCli, startCli, startService, temporaryFolder } from './cli.ts';
import { call, query } from './service.ts';

describe('sluice start', () => {
  test('sluice start without a terminal writes the first key once, for its owner alone, the key opens the service, and another process is refused the data directory', async () => {
    const dataDir = await temporaryFolder();
    const service = await startService(dataDir, { LOG_LEVEL: 'trace' });
    expect(service.key).toMatch(/^slk_\w{20,}$/);
    expect((await stat(join(dataDir, 'first-key'))).mode & 0o777).toBe(0o600);
    const lines = (text: string) => text.split('\n').filter((line) => line !== '');
    const all = [...lines(service.stdout), ...lines(service.stderr)];
    expect(all.map((line) => JSON.parse(line))).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ level: 30, name: 'start', msg: expect.any(String) }),
      ]),
    );
    expect(all.join()).not.toContain(service.key);
    expect((await call(service.url, service.key, '/v1/background_jobs')).status).toBe(200);
    expect((await call(service.url, null, '/v1/background_jobs')).status).toBe(401);
    const second = await runCli(['start', '--data-dir', dataDir]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`process ${service.pid}. Stop that one`);
    expect((await call(service.url, service.key, '/v1/background_jobs')).status).toBe(200);
  });

  test('sluice start at a terminal prints the first key, and writes no file of it', async () => {
    const dataDir = await preparedDataDir();
    const service = startCli(['start', '--data-dir', dataDir], { terminal: true });
    await waitFor('it to listen', () =>
      /^sluice listens on http:\S+ \(1 worker, ready/m.test(service.stdout),
    );
    expect(service.stdout).toMatch(/^ {4}\S*slk_\w{20,}/m);
    expect(await readdir(dataDir)).not.toContain('first-key');
    service.signal('SIGTERM');
    await service.finished;
  });

  test('sluice start with CHANGES_DAYS=0 reports that it keeps no changes; without a writable file for the first key, it names the command for another key', async () => {
    const dataDir = await preparedDataDir();
    await mkdir(join(dataDir, 'first-key'));
    const service = await startService(dataDir, { CHANGES_DAYS: '0', LOG_LEVEL: 'warn' });
    expect(service.key).toBeNull();
    expect(service.stdout).toMatch(
      /It is lost, since \S+first-key cannot be written: .* `sluice keys create`/,
    );
    expect(await query(dataDir, 'select complete_since from sluice.change_log')).toEqual([
      { complete_since: null },
    ]);
    expect(service.stderr).toContain('changes are no longer kept');
    const { stdout } = await runCli(['keys', 'create', '--data-dir', dataDir]);
    expect((await call(service.url, stdout.trim(), '/v1/background_jobs')).status).toBe(200);
  });
});
