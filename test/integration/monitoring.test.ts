import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { isInstalled } from '../support/servers/system-tools.ts';

const samples = resolve(import.meta.dirname, '../../examples/monitoring');
const hasPromtool = isInstalled('promtool');
const testFiles = ['alerts.test.yml', 'alerts-of-days.test.yml'];

interface Dashboard {
  readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
}

const readSample = (name: string): Promise<string> => readFile(join(samples, name), 'utf8');

function promtool(...args: readonly string[]): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8', cwd: samples });
  return { status, output: stdout + stderr };
}

describe('the alerts of examples/monitoring', () => {
  test.skipIf(!hasPromtool)('Prometheus accepts the rules of the alerts and their configuration', () => {
    expect(promtool('check', 'rules', 'alerts.yml')).toMatchObject({ status: 0 });
    expect(promtool('check', 'config', 'prometheus.yml')).toMatchObject({ status: 0 });
  });

  // proves: alerts
  test.skipIf(!hasPromtool)('alerts fire when they should, and not before', () => {
    const { status, output } = promtool('test', 'rules', ...testFiles);
    expect({ status, output }).toEqual({ status: 0, output: expect.stringContaining('SUCCESS') });
  });

  // proves: alerts
  test('each alert is tested to fire and not to fire', async () => {
    const { groups } = parse(await readSample('alerts.yml')) as {
      readonly groups: readonly { readonly rules: readonly { readonly alert: string }[] }[];
    };
    const names = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    const tested = await Promise.all(testFiles.map(readSample));
    const cases = tested.flatMap((text) =>
      (
        parse(text) as { readonly tests: readonly { readonly alert_rule_test: readonly Case[] }[] }
      ).tests.flatMap(({ alert_rule_test: each }) => each),
    );
    const alertsOf = (fires: boolean) =>
      new Set(cases.filter((each) => each.exp_alerts.length > 0 === fires).map((each) => each.alertname));
    expect([...alertsOf(true)].sort()).toEqual([...names].sort());
    expect([...alertsOf(false)].sort()).toEqual([...names].sort());
  });
});

interface Case {
  readonly alertname: string;
  readonly exp_alerts: readonly unknown[];
}

// proves: alerts
test.skipIf(!hasPromtool)('the dashboard uses expressions that Prometheus accepts', async () => {
  const { panels } = JSON.parse(await readSample('grafana-dashboard.json')) as Dashboard;
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  const filled = expressions.map((expr) =>
    expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'sluice').replaceAll('$instance', '.*'),
  );
  const rules = filled.map((expr, at) => ({ record: `panel:${at}`, expr }));
  const folder = await mkdtemp(join(tmpdir(), 'sluice-monitoring-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'panels.yml');
  await writeFile(file, stringify({ groups: [{ name: 'panels', rules }] }));
  expect(promtool('check', 'rules', file)).toMatchObject({ status: 0 });
  expect(rules.length).toBeGreaterThan(40);
});
