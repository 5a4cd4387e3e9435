import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, type TestContext, test } from 'vitest';
import type { Report } from '../soak/report.ts';
import { report as tell } from '../support/exactness.ts';
import { anyQueue } from '../support/site.ts';

const entry = fileURLToPath(new URL('../../dist/test/soak/soak.js', import.meta.url));

describe.concurrent('a short soak', () => {
  test('holds every invariant while the service is killed, paused, stopped and emptied', async (context) => {
    const { code, output, report } = await soak(context, ['--minutes', '0.17', '--fault-seconds', '1.2']);
    expect(code, output).toBe(0);
    expect(report.invariants.filter(({ problems }) => problems.length > 0)).toEqual([]);
    expect(Object.keys(report.faults).length, 'kinds of faults').toBeGreaterThan(4);
    for (const [actor, figures] of Object.entries(report.actors)) {
      const [begun = 0, done = 0] = Object.values(figures);
      expect(begun, `what ${actor} began`).toBeGreaterThan(0);
      // Cancelled and deleted is by chance; all others are to have got through.
      if (!['cancels', 'deletions'].includes(actor))
        expect(done, `what ${actor} got through`).toBeGreaterThan(0);
    }
    expect(report.folder).toBeNull();
    tell(`soak, ${anyQueue}: ${Object.values(report.faults).reduce((sum, count) => sum + count, 0)} faults`);
  });

  test('notices workers that do not bring repeated keys in order, says what is wrong, and keeps the data', async (context) => {
    const { code, report } = await soak(context, ['--minutes', '0.1', '--no-kills', '--forget-replays']);
    expect(code).toBe(1);
    // Not of every actor: some files have one chunk only.
    const broken = report.invariants.filter(({ name }) => /^all is as [\w-]+ left it$/.test(name));
    const problems = broken.flatMap((invariant) => invariant.problems).join();
    expect(problems).toMatch(/(?:users|companies) with other properties: [\w-]+-\d+ is \{.*\}, not \{/);
    expect(report.faults).toEqual({});
    expect(existsSync(join(report.folder ?? '', 'journal.log'))).toBe(true);
    await rm(report.folder ?? '', { recursive: true, force: true });
  });
});

interface Outcome {
  readonly code: number | null;
  readonly output: string;
  readonly report: Report;
}

async function soak({ onTestFinished }: TestContext, flags: readonly string[]): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-soak-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const json = join(folder, 'report.json');
  const child = spawn(
    process.execPath,
    [entry, '--seed', '7', '--queue', anyQueue, '--json', json, ...flags],
    {
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TMPDIR: tmpdir() },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  onTestFinished(() => void child.kill('SIGTERM'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)));
  const [code] = (await once(child, 'close')) as [number | null];
  const text = await readFile(json, 'utf8').catch(() => {
    throw new Error(`the soak wrote no report; it said:\n${output}`);
  });
  return { code, output, report: JSON.parse(text) as Report };
}
