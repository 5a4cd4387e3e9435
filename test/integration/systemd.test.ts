import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig } from '../../src/base/config.ts';
import { settings } from '../../src/base/settings.ts';
import { repository } from '../support/servers/compose.ts';
import { isInstalled } from '../support/servers/system-tools.ts';

const samples = join(repository, 'examples/systemd');
const hasSystemd = isInstalled('systemd-analyze');
/** Highest exposure, from 0 to 10, that `systemd-analyze security` may report for a unit. */
const mostExposure = 3;

let folder: string;
let units: Map<string, string>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-systemd-'));
  const names = (await readdir(samples)).filter((name) => /\.(service|timer)$/.test(name));
  const texts = names.map(async (name) => [name, await readFile(join(samples, name), 'utf8')] as const);
  units = new Map(await Promise.all(texts));
});
afterAll(() => rm(folder, { recursive: true }));

const valuesOf = (unit: string, name: string): string[] =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);

function analyze(...args: readonly string[]): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8', cwd: folder });
  return { status, output: stdout + stderr };
}

// proves: systemd
test.skipIf(!hasSystemd)(
  'systemd accepts each unit without a warning, and rates its exposure below 3.0',
  async () => {
    // Replaces the program, which is not installed on this machine, with Node.
    for (const [name, unit] of units)
      await writeFile(join(folder, name), unit.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`));
    for (const name of units.keys()) {
      expect([name, analyze('verify', '--man=no', name)]).toEqual([name, { status: 0, output: '' }]);
      if (!name.endsWith('.service')) continue;
      const { output } = analyze('security', '--offline=true', name);
      const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(output)?.[1]);
      expect([name, exposure < mostExposure]).toEqual([name, true]);
    }
  },
);

// proves: systemd
test('each unit stops in order and in time, restarts, and keeps its data', async () => {
  const { drainMs, shutdownMs } = readConfig({});
  const user = /^u (\w+) /m.exec(await readFile(join(samples, 'sluice.sysusers'), 'utf8'))?.[1];
  for (const [name, unit] of units) {
    // Only the main process may receive the signal. The database server would respond to it by
    // waiting for its clients to disconnect.
    const one = (option: string): string | undefined => valuesOf(unit, option)[0];
    expect([name, one('KillMode'), one('Restart'), one('Type')]).toEqual([name, 'mixed', 'always', 'exec']);
    expect(Number.parseInt(one('TimeoutStopSec') ?? '', 10) * 1_000).toBeGreaterThan(
      drainMs + shutdownMs + 5_000,
    );
    // If a setting is invalid, the program exits with code 2. systemd must not restart it then.
    expect([one('RestartPreventExitStatus'), one('StartLimitIntervalSec')]).toEqual(['2', '0']);
    expect([one('User'), one('StateDirectory')]).toEqual([user, 'sluice']);
    expect(one('Environment')).toContain('DATA_DIR=/var/lib/sluice');
    expect(valuesOf(unit, 'MemoryDenyWriteExecute')).toEqual([]);
    expect(Number(one('LimitNOFILE'))).toBeGreaterThan(2 * readConfig({}).maxConnections);
  }
});

test('the settings of sluice.env exist, and pass their check', async () => {
  const text = await readFile(join(samples, 'sluice.env'), 'utf8');
  const lines = [...text.matchAll(/^#?([A-Z_]+)=(.*)$/gm)];
  const variables = Object.fromEntries(lines.map(([, name = '', value = '']) => [name, value]));
  const settingNames = Object.values(settings).map(({ name }) => name as string);
  expect(Object.keys(variables).filter((name) => !settingNames.includes(name))).toEqual([]);
  expect(readConfig(variables)).toMatchObject({ trustProxy: ['127.0.0.1'], storage: { kind: 's3' } });
});
