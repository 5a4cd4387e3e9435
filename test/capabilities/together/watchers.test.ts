import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../../src/base/package-root.ts';
import { runManually, startManually } from '../../support/files/load-file.ts';
import { openServer } from '../../support/servers/http.ts';
import { scrape } from '../../support/servers/metrics.ts';

const { t, server } = await openServer({ worker: true });
const { environmentId } = t.environment;

const watchers = [
  'examples/monitoring/alerts.yml',
  'examples/monitoring/alerts.test.yml',
  'examples/monitoring/alerts-of-days.test.yml',
  'examples/monitoring/grafana-dashboard.json',
  'examples/kubernetes/work.yaml',
  'examples/kubernetes/prometheus-adapter.yaml',
  'docs/operations.md',
  'docs/architecture.md',
  'docs/notifications.md',
];

// proves: alerts
test('all metrics and labels of dashboards, alerts and documents exist', async () => {
  await runManually(await startManually(t.system, environmentId, 'user_id,name\nu1,Ada\n'));
  await t.system.pool.query(
    `insert into schedules (environment_id, schedule_name, considered_until, definition) values ($1, 'nightly', now(), '{}')`,
    [environmentId],
  );
  await t.system.pool.query(
    `insert into schedule_runs (environment_id, schedule_name, due_at, created_at, cause, status, definition, ended_at, reason_code)
     values ($1, 'nightly', now(), now(), 'due', 'failed', '{}', now(), 'x')`,
    [environmentId],
  );
  await server.fetch('/health/live');
  const { page, samples } = await scrape(server);
  const types = new Map(
    [...page.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => [name, type]),
  );
  const onPage = (name: string): boolean => {
    const baseName = name.replace(/_(?:bucket|sum|count)$/, '');
    return types.has(name) || ['histogram', 'summary'].includes(types.get(baseName) ?? '');
  };
  const labels = [...samples.keys()].map((sample) => sample.replaceAll('\\"', ''));
  for (const file of watchers) {
    const text = (await readFile(join(packageRoot, file), 'utf8')).replaceAll('\\"', '"');
    const metricNames = new Set(text.match(/\b(?:sluice|nodejs|process)_[a-z0-9_]+\b/g));
    if (file.startsWith('examples')) expect([file, metricNames.size > 0]).toEqual([file, true]);
    expect([file, [...metricNames].filter((name) => !onPage(name))]).toEqual([file, []]);
    for (const [, name = '', selector = ''] of text.matchAll(/\b(sluice_\w+)\{([^}]*)\}/g)) {
      for (const [matcher, label = ''] of selector.matchAll(/(\w+)=~?"[^"]*"/g)) {
        const isOfPrometheus = ['job', 'instance', 'le'].includes(label);
        const hasValue = labels.some((sample) => sample.startsWith(`${name}{`) && sample.includes(matcher));
        const hasLabel = labels.some(
          (sample) => sample.startsWith(`${name}{`) && sample.includes(`${label}="`),
        );
        // The values of status and route depend on requests. All other label values are fixed.
        const isShown = name.startsWith('sluice_http_') || label === 'schedule' ? hasLabel : hasValue;
        expect([file, name, matcher, isOfPrometheus || isShown]).toEqual([file, name, matcher, true]);
      }
    }
  }
});
