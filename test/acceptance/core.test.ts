import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { setup } from '../support/servers/core-program.ts';
import { coreProgram, program } from '../support/servers/program.ts';
import { temporaryFolder } from './cli.ts';

beforeAll(async () => {
  if (program !== coreProgram) await setup();
});

test('the core runs its demo to the end, and has no commands of capabilities', async () => {
  const cwd = await temporaryFolder();
  const few = ['--users', '2000', '--companies', '50', '--events', '500'];
  const { stdout } = await promisify(execFile)(process.execPath, [coreProgram, 'demo', ...few], {
    cwd,
    env: { PATH: process.env['PATH'], TMPDIR: cwd },
  });
  expect(stdout).toContain('everything stopped');
  await expect(
    promisify(execFile)(process.execPath, [coreProgram, 'schedules', 'list'], { cwd }),
  ).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining("unknown command 'schedules'") });
});
