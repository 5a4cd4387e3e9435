import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCli, temporaryFolder } from './cli.ts';

describe('in a folder without data', () => {
  test.each([['jobs', 'list'], ['export', '--out', 'backup'], ['status'], ['keys', 'list'], ['migrate']])(
    'sluice %s says where it looked and what to do, and makes nothing',
    async (...args) => {
      const cwd = await temporaryFolder();
      const { code, stdout, stderr } = await runCli(args, { cwd });
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain(`no data of sluice in ${join(cwd, '.sluice')}`);
      expect(stderr).toContain('--data-dir');
      expect(await readdir(cwd)).toEqual([]);
    },
  );

  test('sluice import makes a database and says where; then others find it', async () => {
    const cwd = await temporaryFolder();
    await writeFile(join(cwd, 'users.csv'), 'user_id\nada\n');
    const loaded = await runCli(['import', 'users.csv'], { cwd });
    expect(loaded.stderr).toContain(`Making a new database in ${join(cwd, '.sluice')}`);
    expect(loaded.code).toBe(0);
    const listed = await runCli(['jobs', 'list'], { cwd });
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining('users.csv'), stderr: '' });
  });
});
