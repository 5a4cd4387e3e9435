import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/base/config.ts';
import { settings } from '../../src/base/settings.ts';
import { describeApi } from '../../tools/describe-api.ts';
import { repository } from '../support/servers/compose.ts';

const samples = join(repository, 'examples/kubernetes');
/** A file with values for a Helm chart. The other samples define Kubernetes objects. */
const adapterFile = 'prometheus-adapter.yaml';

type Labels = Readonly<Record<string, string>>;

interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string };
  readonly exec?: { readonly command: readonly string[] };
  readonly periodSeconds: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold: number;
}

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly startupProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
}

interface PodTemplate {
  readonly metadata: { readonly labels: Labels };
  readonly spec: {
    readonly terminationGracePeriodSeconds?: number;
    readonly containers: readonly [Container];
    readonly volumes: readonly { readonly secret?: { readonly secretName: string } }[];
  };
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly selector?: Labels & { readonly matchLabels?: Labels };
    readonly podSelector?: { readonly matchLabels: Labels };
    readonly template?: PodTemplate;
    readonly scaleTargetRef?: { readonly name: string };
    readonly metrics?: readonly { readonly external: { readonly metric: { readonly name: string } } }[];
  };
}

let folder: string;
let manifests: readonly Manifest[];
let pods: ReadonlyMap<string, PodTemplate>;
let variables: Record<string, string>;
beforeAll(async () => {
  // The folder is inside the repository, so that the compiler finds the types.
  folder = await mkdtemp(join(repository, 'node_modules/.sluice-kubernetes-'));
  const names = (await readdir(samples)).filter((name) => name.endsWith('.yaml') && name !== adapterFile);
  const texts = await Promise.all(names.map((name) => readFile(join(samples, name), 'utf8')));
  manifests = texts.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Manifest));
  const templates = manifests.flatMap(({ spec, metadata }) =>
    spec?.template === undefined ? [] : [[metadata.name, spec.template] as const],
  );
  pods = new Map(templates);
  variables = { ...find('ConfigMap', 'sluice-settings').data };
});
afterAll(() => rm(folder, { recursive: true }));

function find(kind: string, name: string): Manifest {
  const matches = manifests.filter((each) => each.kind === kind && each.metadata.name === name);
  if (matches[0] === undefined || matches.length > 1) throw new Error(`${matches.length} × ${kind} ${name}`);
  return matches[0];
}

const typeFiles: Readonly<Record<string, string>> = {
  v1: 'core/v1',
  'apps/v1': 'apps/v1',
  'batch/v1': 'batch/v1',
  'policy/v1': 'policy/v1',
  'autoscaling/v2': 'autoscaling/v2',
  'networking.k8s.io/v1': 'networking/v1',
};

// proves: kubernetes
test('the manifests match the published API of Kubernetes: no field is misspelt, missing or of another type', async () => {
  const lines = manifests.map(
    (each, at) =>
      `import type { ${each.kind} as T${at} } from 'kubernetes-types/${typeFiles[each.apiVersion]}.d.ts';\n` +
      `export const m${at}: T${at} = ${JSON.stringify(each, null, 1)};\n`,
  );
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--ignoreConfig', '--module', 'nodenext'];
  const compile = async (name: string, text: string): Promise<string> => {
    const file = join(folder, name);
    await writeFile(file, text);
    const tsc = join(repository, 'node_modules/.bin/tsc');
    return spawnSync(tsc, [...options, file], { encoding: 'utf8', cwd: repository }).stdout;
  };
  expect(await compile('manifests.ts', lines.join(''))).toBe('');
  // Proves that the compiler reports a misspelt field.
  const misspelt = lines.join('').replace('"failureThreshold"', '"failureTreshold"');
  expect(await compile('misspelt.ts', misspelt)).toContain('failureTreshold');
});

test('the names in the manifests exist: pods of the labels, settings, secrets and the scaled deployment', () => {
  const all = [...pods.values()].map(({ metadata }) => metadata.labels);
  for (const { kind, metadata, spec } of manifests) {
    if (kind !== 'Namespace') expect([metadata.name, metadata.namespace]).toEqual([metadata.name, 'sluice']);
    const labels = spec?.podSelector?.matchLabels ?? spec?.selector?.matchLabels ?? spec?.selector;
    if (labels === undefined || spec?.scaleTargetRef !== undefined) continue;
    const chosen = all.filter((each) =>
      Object.entries(labels).every(([name, value]) => each[name] === value),
    );
    expect([metadata.name, chosen.length > 0]).toEqual([metadata.name, true]);
  }
  const { stringData = {} } = find('Secret', 'sluice-secrets');
  for (const [name, { spec }] of pods) {
    expect(spec.volumes.some(({ secret }) => secret?.secretName === 'sluice-secrets')).toBe(true);
    for (const { value } of spec.containers[0].env)
      expect([name, Object.keys(stringData)]).toEqual([
        name,
        expect.arrayContaining([value.replace('/run/secrets/sluice/', '')]),
      ]);
  }
  const scaler = manifests.find(({ kind }) => kind === 'HorizontalPodAutoscaler');
  find('Deployment', scaler?.spec?.scaleTargetRef?.name ?? '');
});

test('the settings of the manifests exist and pass their check, and one image runs in all roles', async () => {
  const settingNames = Object.values(settings).map(({ name }) => name as string);
  const { stringData = {} } = find('Secret', 'sluice-secrets');
  const secrets = await mkdtemp(join(tmpdir(), 'sluice-kubernetes-'));
  for (const [name, value] of Object.entries(stringData)) await writeFile(join(secrets, name), value);
  const containers = [...pods.values()].map(({ spec }) => spec.containers[0]);
  for (const { env } of containers) {
    const files = env.map(
      ({ name, value }) => [name, value.replace('/run/secrets/sluice', secrets)] as const,
    );
    const values = { ...variables, ...Object.fromEntries(files) };
    const names = Object.keys(values).map((name) => name.replace(/_FILE$/, ''));
    expect(names.filter((name) => !settingNames.includes(name))).toEqual([]);
    expect(readConfig(values)).toMatchObject({ storage: { kind: 's3' }, redisUrl: expect.any(String) });
  }
  await rm(secrets, { recursive: true });
  expect(containers.map(({ args }) => args[0]).sort()).toEqual(['migrate', 'serve', 'work']);
  expect(new Set(containers.map(({ image }) => image)).size).toBe(1);
});

// proves: kubernetes
test('pods stop in time: no request reaches a server that stops, and its work may end', async () => {
  const { drainMs, shutdownMs } = readConfig(variables);
  const server = pods.get('sluice-serve');
  const worker = pods.get('sluice-work');
  const { readinessProbe: ready, livenessProbe: live } = server?.spec.containers[0] ?? {};
  if (ready === undefined) throw new Error('a server is not probed');
  const noticedMs = (ready.periodSeconds * ready.failureThreshold + (ready.timeoutSeconds ?? 1)) * 1_000;
  expect(drainMs).toBeGreaterThan(noticedMs);
  const graceMs = (pod: PodTemplate | undefined) => (pod?.spec.terminationGracePeriodSeconds ?? 0) * 1_000;
  expect(graceMs(server)).toBeGreaterThan(drainMs + shutdownMs + 5_000);
  expect(graceMs(worker)).toBeGreaterThan(shutdownMs + 5_000);
  const { paths } = await describeApi();
  for (const probe of [ready, live]) expect(Object.keys(paths)).toContain(probe?.httpGet?.path);
  // The probe runs the same health check as the service in docker-compose.yml.
  const compose = await readFile(join(repository, 'docker-compose.yml'), 'utf8');
  const check = worker?.spec.containers[0].startupProbe?.exec?.command.join(', ') ?? '';
  expect(compose).toContain(`test: [CMD, ${check}]`);
});

// proves: kubernetes
test('pods fulfil the strictest security standard of Kubernetes', () => {
  expect(find('Namespace', 'sluice').metadata).toMatchObject({
    labels: { 'pod-security.kubernetes.io/enforce': 'restricted' },
  });
  for (const { spec } of pods.values()) {
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(spec.containers[0]).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      resources: { requests: expect.anything(), limits: { memory: expect.any(String) } },
    });
  }
});

test('workers are scaled by metrics that prometheus-adapter passes on', async () => {
  const { rules } = parse(await readFile(join(samples, adapterFile), 'utf8')) as {
    readonly rules: { readonly external: readonly { readonly seriesQuery: string }[] };
  };
  const passedOn = rules.external.map(({ seriesQuery }) => seriesQuery).join();
  const scaler = manifests.find(({ kind }) => kind === 'HorizontalPodAutoscaler');
  const metricNames = scaler?.spec?.metrics?.map(({ external }) => external.metric.name) ?? [];
  expect(metricNames.length).toBeGreaterThan(0);
  for (const name of metricNames) expect(passedOn).toContain(name);
});
