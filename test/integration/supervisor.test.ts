import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { superviseWorkers } from '../../src/cli/processes.ts';
import { collectLog } from '../support/servers/collected-log.ts';
import { waitFor } from '../support/wait-for.ts';

test('a worker that the system refuses to start is tried again, and its supervisor survives', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-supervisor-'));
  const entry = join(folder, 'worker.js');
  await writeFile(entry, 'process.once("disconnect", () => process.exit());');
  const processEnv: Record<string, string> = {};
  const { log, lines } = collectLog();
  const workers = superviseWorkers({ size: 1, entry, processEnv, log });
  try {
    const [first = 0] = workers.pids;
    // Makes the environment variables too large for a process. `fork` then throws, as it would if
    // memory were short.
    processEnv['LARGE'] = 'x'.repeat(8 * 1024 * 1024);
    process.kill(first, 'SIGKILL');
    await waitFor('a refusal', () => lines.some(({ ending }) => ending === 'spawn E2BIG'));
    expect(workers.pids).toEqual([]);
    delete processEnv['LARGE'];
    const [second] = await waitFor('another worker', () => workers.pids.length > 0 && workers.pids);
    expect(second).not.toBe(first);
  } finally {
    await workers.stop();
    await rm(folder, { recursive: true });
  }
});
