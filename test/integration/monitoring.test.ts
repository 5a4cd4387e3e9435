import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { isInstalled } from '../support/system-tools.ts';

const samples = resolve(import.meta.dirname, '../../examples/monitoring');
const hasPromtool = isInstalled('promtool');
const testFiles = ['alerts.test.yml', 'alerts-of-days.test.yml'];

interface Panel {
  readonly id: number;
  readonly type: 'row' | 'stat' | 'timeseries';
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly datasource: { readonly uid: string };
  }[];
}

interface Dashboard {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly query: string | { readonly query: string };
    }[];
  };
  readonly panels: readonly Panel[];
}

const read = (name: string): Promise<string> => readFile(join(samples, name), 'utf8');

/** What it says, and how it ended. */
function promtool(...args: readonly string[]): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8', cwd: samples });
  return { status, output: stdout + stderr };
}

describe('the alerts of examples/monitoring', () => {
  test.skipIf(!hasPromtool)('are rules that Prometheus takes, in a configuration that it takes', () => {
    expect(promtool('check', 'rules', 'alerts.yml')).toMatchObject({ status: 0 });
    expect(promtool('check', 'config', 'prometheus.yml')).toMatchObject({ status: 0 });
  });

  // proves: alerts
  test.skipIf(!hasPromtool)('fire when they should, and not before', () => {
    const { status, output } = promtool('test', 'rules', ...testFiles);
    expect({ status, output }).toEqual({ status: 0, output: expect.stringContaining('SUCCESS') });
  });

  // proves: alerts
  test('are each tested to fire and not to fire', async () => {
    const { groups } = parse(await read('alerts.yml')) as {
      readonly groups: readonly { readonly rules: readonly { readonly alert: string }[] }[];
    };
    const names = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    const tested = await Promise.all(testFiles.map(read));
    const cases = tested.flatMap((text) =>
      (
        parse(text) as { readonly tests: readonly { readonly alert_rule_test: readonly Case[] }[] }
      ).tests.flatMap(({ alert_rule_test: each }) => each),
    );
    const of = (fires: boolean) =>
      new Set(cases.filter((each) => each.exp_alerts.length > 0 === fires).map((each) => each.alertname));
    expect([...of(true)].sort()).toEqual([...names].sort());
    expect([...of(false)].sort()).toEqual([...names].sort());
  });

  test('go to an Alertmanager that knows them', async () => {
    const [config, alerts] = await Promise.all([read('alertmanager.yml'), read('alerts.yml')]);
    const {
      route,
      receivers,
      inhibit_rules: inhibitions,
    } = parse(config) as {
      readonly route: {
        readonly receiver: string;
        readonly routes: readonly { readonly receiver: string }[];
      };
      readonly receivers: readonly { readonly name: string }[];
      readonly inhibit_rules: readonly Record<'source_matchers' | 'target_matchers', readonly string[]>[];
    };
    const known = receivers.map(({ name }) => name);
    for (const { receiver } of [route, ...route.routes]) expect(known).toContain(receiver);
    const matchers = inhibitions.flatMap((each) => [...each.source_matchers, ...each.target_matchers]);
    const named = matchers.flatMap((matcher) => {
      const [, prefix = '', rest = ''] = /"(\w+)(?:\(([\w|]+)\))?"/.exec(matcher) ?? [];
      return rest === '' ? [prefix] : rest.split('|').map((each) => prefix + each);
    });
    expect(named.length).toBeGreaterThan(3);
    for (const name of named) expect(alerts).toContain(`alert: ${name}\n`);
  });
});

interface Case {
  readonly alertname: string;
  readonly exp_alerts: readonly unknown[];
}

describe('the dashboard of examples/monitoring', () => {
  let dashboard: Dashboard;
  let folder: string;
  beforeAll(async () => {
    dashboard = JSON.parse(await read('grafana-dashboard.json')) as Dashboard;
    folder = await mkdtemp(join(tmpdir(), 'sluice-monitoring-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const panels = (): readonly Panel[] => dashboard.panels.filter(({ type }) => type !== 'row');

  test('can be imported into Grafana 10 with any Prometheus: each question goes to the source that is chosen', () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(38);
    const variables = dashboard.templating.list.map(({ name }) => name);
    expect(variables).toEqual(['datasource', 'job', 'instance']);
    for (const { title, datasource, targets = [] } of panels()) {
      expect([title, targets.length > 0]).toEqual([title, true]);
      const refIds = targets.map(({ refId }) => refId);
      expect([title, new Set(refIds).size]).toEqual([title, refIds.length]);
      for (const source of [datasource, ...targets.map((each) => each.datasource)])
        expect(source?.uid, title).toMatch(/^\$\{datasource\}$/);
      for (const { expr } of targets)
        for (const [, used = ''] of expr.matchAll(/\$([a-z]+)/g)) expect(variables).toContain(used);
    }
  });

  test('says of each panel what it shows and in which unit, and no panel lies upon another', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const taken = new Map<string, string>();
    for (const { title, type, description, fieldConfig, gridPos } of dashboard.panels) {
      const said = type === 'row' || (description !== undefined && fieldConfig?.defaults.unit !== undefined);
      expect([title, said, gridPos.x + gridPos.w <= 24]).toEqual([title, true, true]);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect([title, taken.get(`${x} ${y}`)]).toEqual([title, undefined]);
          taken.set(`${x} ${y}`, title);
        }
      }
    }
    const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    expect(rows).toEqual([
      'Health',
      'Requests and single records',
      'Loads',
      'Queue and lanes',
      'Exports, deletions and schedules',
      'Database',
      'Processes of the servers',
    ]);
  });

  // proves: alerts
  test.skipIf(!hasPromtool)('asks in expressions that Prometheus understands', async () => {
    const asked = panels().flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    const filled = asked.map((expr) =>
      expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'sluice').replaceAll('$instance', '.*'),
    );
    const rules = filled.map((expr, at) => ({ record: `panel:${at}`, expr }));
    const file = join(folder, 'panels.yml');
    await writeFile(file, stringify({ groups: [{ name: 'panels', rules }] }));
    expect(promtool('check', 'rules', file)).toMatchObject({ status: 0 });
    expect(rules.length).toBeGreaterThan(40);
  });
});
