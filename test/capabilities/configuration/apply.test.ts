import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { findEnvironment } from '../../../src/access/environment-store.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { applyFile, planFile } from '../../../src/capabilities/configuration/apply.ts';
import { type EnvironmentFile, findFiles, readFiles } from '../../../src/capabilities/configuration/files.ts';
import {
  listSubscriptions,
  readSecrets,
} from '../../../src/capabilities/notifications/subscription-store.ts';
import { addSubscription } from '../../../src/capabilities/notifications/subscriptions.ts';
import { readRules } from '../../../src/capabilities/rules/store.ts';
import { readSchedules } from '../../../src/capabilities/schedules/keep.ts';
import { definitionsSection } from '../../../src/lookups/apply-definitions.ts';
import { readDefinitions } from '../../../src/lookups/store.ts';
import { capabilities } from '../../../src/registry.ts';
import { runs } from '../../support/runs.ts';
import { runCommand } from '../../support/servers/run-command.ts';
import { systemOfFile } from '../../support/servers/system.ts';
import { applyFolder, folderOf, linesOf, writeFiles } from './support/folder.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const otherSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const token = 'T0KEN-that-nobody-may-see';
const t = await systemOfFile({
  settings: {
    SCHEDULES_LOCAL_ROOTS: '/in',
    SUBSCRIPTION_TOKEN: token,
    SUBSCRIPTION_SECRET: secret,
    SUBSCRIPTION_SLACK: `https://hooks.slack.com/services/${token}`,
    SUBSCRIPTION_OTHER: otherSecret,
    SUBSCRIPTION_SHORT: 'whsec_short',
  },
});
const { db } = t.system;

let count = 0;
let name: string;
let environmentId: number;
beforeEach(async () => {
  count += 1;
  name = `shop-${count}`;
  environmentId = (await t.addEnvironment(name)).environment.environmentId;
});

const schedule = (name: string, pattern = '*.csv') => ({
  name,
  cron: '0 3 * * *',
  load: { files: { pattern }, entity: 'users' },
});
const subscription = (name: string, url = 'https://example.com/hooks') => ({ name, url });
const everything = {
  definitions: { features: [{ key: 'report', display_name: 'Report' }] },
  rules: { users: { properties: { plan: { enum: ['free', 'pro'] } } } },
  schedules: { schedules: [schedule('nightly')] },
  subscriptions: [subscription('ops')],
};

async function stored(of = environmentId) {
  return {
    features: (await readDefinitions(db, of, [])).features.map(({ key }) => key),
    rules: (await readRules(db, of))?.document ?? null,
    schedules: (await readSchedules(db, of)).map(({ definition }) => definition.name),
    subscriptions: (await listSubscriptions(db, of)).map(({ name }) => name),
  };
}
const nothing = { features: [], rules: null, schedules: [], subscriptions: [] };

test('a file with all members configures its environment, and applying it again changes nothing', async () => {
  const folder = await folderOf({ [`${name}.yaml`]: everything, 'README.md': 'Configuration' });
  const dryRun = await applyFolder(t, folder, '--dry-run');
  const changes = [
    `${name} + definitions features.report`,
    `${name} + rules users.plan`,
    `${name} + subscriptions ops`,
    `${name} + schedules nightly`,
  ];
  expect(linesOf(dryRun)).toEqual(changes);
  expect(dryRun).toMatchObject({ exitCode: 2, environments: [{ written: false }] });
  expect(await stored()).toEqual(nothing);

  const applied = await applyFolder(t, folder);
  expect(linesOf(applied)).toEqual(changes);
  expect(applied).toMatchObject({ exitCode: 0, environments: [{ written: true, error: null }] });
  expect(await stored()).toEqual({
    features: ['report'],
    rules: everything.rules,
    schedules: ['nightly'],
    subscriptions: ['ops'],
  });

  for (const options of [['--dry-run'], ['--prune']]) {
    const again = await applyFolder(t, folder, ...options);
    expect(again).toMatchObject({ exitCode: 0, environments: [{ written: false, changes: [] }] });
  }
});

test('the example of the docs is valid for the command and for its schema', async () => {
  const page = await readFile(join(packageRoot, 'docs/environments.md'), 'utf8');
  const [, example = ''] = /```yaml\n(.*?)```/s.exec(page) ?? [];
  const folder = await folderOf({ [`${name}.yaml`]: example });
  expect(await applyFolder(t, folder)).toMatchObject({ exitCode: 0, environments: [{ error: null }] });
  expect((await stored()).subscriptions).toEqual(['ops', 'chat', 'ada']);
  const schemas = ['environment', 'segment'].map(async (schema) => {
    const text = await readFile(join(packageRoot, `docs/schemas/${schema}.schema.json`), 'utf8');
    return JSON.parse(text) as object;
  });
  const [environment = {}, segment = {}] = await Promise.all(schemas);
  const validate = new Ajv2020({ strict: false, schemas: [segment] }).compile(environment);
  expect(validate(parse(example))).toBe(true);
  expect(validate({ subscriptions: [{ name: 'ops' }] })).toBe(false);
});

test('a plan names each field that differs with its old and its new value', async () => {
  const folder = await folderOf({ [`${name}.yaml`]: everything });
  await applyFolder(t, folder);
  await writeFiles(folder, {
    [`${name}.yaml`]: {
      definitions: { features: [{ key: 'report', display_name: 'Reports' }] },
      rules: { users: { unknown: 'strip', properties: { plan: { enum: ['free'], otherwise: 'refuse' } } } },
      schedules: { schedules: [{ ...schedule('nightly', 'new/*.csv'), overlap: 'wait' }] },
      subscriptions: [{ ...subscription('ops'), on: ['failed'] }],
    },
  });
  const { environments } = await applyFolder(t, folder, '--dry-run');
  expect(environments[0]?.changes.flatMap(({ fields }) => fields)).toEqual([
    { field: 'display_name', before: 'Report', after: 'Reports' },
    { field: 'enum', before: ['free', 'pro'], after: ['free'] },
    { field: 'otherwise', after: 'refuse' },
    {
      field: 'on',
      before: ['completed', 'completed_with_rejects', 'held', 'failed'],
      after: ['failed'],
    },
    { field: 'load.files.pattern', before: '*.csv', after: 'new/*.csv' },
    { field: 'overlap', before: 'skip', after: 'wait' },
  ]);
  expect(await runCommand(t, 'apply', folder)).toBe(
    [
      `${name} (${join(folder, `${name}.yaml`)})`,
      '~ definitions  features.report',
      '    display_name: "Report" → "Reports"',
      '+ rules  users',
      '~ rules  users.plan',
      '    enum: ["free","pro"] → ["free"]',
      '    otherwise: none → "refuse"',
      '~ subscriptions  ops',
      '    on: ["completed","completed_with_rejects","held","failed"] → ["failed"]',
      '~ schedules  nightly',
      '    load.files.pattern: "*.csv" → "new/*.csv"',
      '    overlap: "skip" → "wait"',
      '',
    ].join('\n'),
  );
});

describe('items that a file lacks', () => {
  const less = {
    definitions: { features: [] },
    rules: { companies: { unknown: 'report' } },
    schedules: { schedules: [] },
    subscriptions: [],
  } as const;

  test('items that a file lacks stay without --prune', async () => {
    const folder = await folderOf({ [`${name}.yaml`]: everything });
    await applyFolder(t, folder);
    const before = await stored();
    await writeFiles(folder, { [`${name}.yaml`]: less });
    expect(linesOf(await applyFolder(t, folder))).toEqual([`${name} + rules companies`]);
    expect(await stored()).toEqual({ ...before, rules: { ...everything.rules, ...less.rules } });
  });

  test('--prune removes the items that a member lacks, and keeps members that the file lacks', async () => {
    const folder = await folderOf({ [`${name}.yaml`]: everything });
    await applyFolder(t, folder);
    const { schedules: _, ...others } = less;
    await writeFiles(folder, { [`${name}.yaml`]: others });
    expect(linesOf(await applyFolder(t, folder, '--prune', '--yes'))).toEqual([
      `${name} - definitions features.report`,
      `${name} + rules companies`,
      `${name} - rules users.plan`,
      `${name} - subscriptions ops`,
    ]);
    expect(await stored()).toEqual({ ...nothing, rules: less.rules, schedules: ['nightly'] });
  });

  test('--prune without a terminal is refused if it would remove something, unless --yes confirms it', async () => {
    const other = await t.addEnvironment(`${name}-other`);
    const files = { [`${name}.yaml`]: everything, [`${name}-other.yaml`]: everything };
    const folder = await folderOf(files);
    await applyFolder(t, folder, '--prune');
    const before = await stored();
    await writeFiles(folder, {
      [`${name}.yaml`]: { ...everything, subscriptions: [] },
      [`${name}-other.yaml`]: { ...everything, schedules: { schedules: [schedule('hourly')] } },
    });
    await expect(applyFolder(t, folder, '--prune')).rejects.toThrow(/add --yes/);
    expect(await stored()).toEqual(before);
    expect(await stored(other.environment.environmentId)).toEqual(before);
  });

  test('--prune keeps segments and subscriptions that no file declared', async () => {
    const rules = { allowPrivate: false };
    const wish = {
      channel: 'email',
      target: 'ada@example.com',
      outcomes: ['failed'],
      kinds: ['load'],
    } as const;
    await addSubscription(t.system, environmentId, wish, rules);
    await db
      .insertInto('segments')
      .values({
        environment_id: environmentId,
        ...{
          key: 'api',
          title: 'API',
          usage: 'analytics',
          category: 'custom',
          status: 'active',
          made_by: 'api',
        },
        ...{
          is_hidden: false,
          is_protected: false,
          definition: JSON.stringify({ property: 'a', equals: 1 }),
        },
      })
      .execute();
    const folder = await folderOf({ [`${name}.yaml`]: less });
    await applyFolder(t, folder, '--prune', '--yes');
    expect((await stored()).subscriptions).toEqual([null]);
    expect((await readDefinitions(db, environmentId, [])).segments.map(({ key }) => key)).toEqual(['api']);
  });
});

describe('a folder with a fault', () => {
  test('all problems of all files are named with their places, and no file is applied', async () => {
    const folder = await folderOf({
      [`${name}.yaml`]: everything,
      'b.yaml': 'rules:\n  users:\n    unknown: maybe\nscheduled: []\n',
      'c.json': '{"subscriptions": [{"name": "a", "url": "http://example.com"}, {"name": "a"}]}',
    });
    const file = (name: string): string => join(folder, name);
    const result = await applyFolder(t, folder);
    expect(result).toMatchObject({ exitCode: 1, problem_count: 4 });
    expect((result as unknown as { problems: object[] }).problems).toMatchObject([
      { file: file('b.yaml'), line: 3, message: expect.stringMatching(/^rules\.users\.unknown must be/) },
      { file: file('b.yaml'), line: 4, message: expect.stringMatching(/^scheduled is unknown/) },
      { file: file('c.json'), message: expect.stringMatching(/^subscriptions\[1\]/) },
      { file: file('c.json'), message: expect.stringMatching(/^subscriptions\[1\]/) },
    ]);
    expect(await stored()).toEqual(nothing);
  });

  test.each([
    ['Shop.yaml', /"[^"]*Shop\.yaml" is not named like an environment/],
    ['..yaml', /There is no file/],
    ['a b.yaml', /is not named like an environment/],
  ])('the file name %j is refused', async (file, message) => {
    await expect(applyFolder(t, await folderOf({ [file]: {} }))).rejects.toThrow(message);
  });

  test('two files of one environment are refused', async () => {
    const folder = await folderOf({ [`${name}.yaml`]: {}, [`${name}.json`]: {} });
    await expect(applyFolder(t, folder)).rejects.toThrow(/are of one environment\. Leave one out/);
  });

  test('all missing environments are named before anything changes, and --create creates them', async () => {
    const folder = await folderOf({
      [`${name}.yaml`]: everything,
      [`${name}-x.yaml`]: everything,
      [`${name}-y.yaml`]: {},
    });
    await expect(applyFolder(t, folder)).rejects.toThrow(
      new RegExp(
        `no environment ${name}-x\\. Create it with \`sluice env create ${name}-x\`, or add --create\\.\nThere is no environment ${name}-y\\.`,
      ),
    );
    expect(await stored()).toEqual(nothing);
    const dryRun = await applyFolder(t, folder, '--create', '--dry-run');
    expect(dryRun).toMatchObject({
      exitCode: 2,
      environments: [{ created: false }, { created: true }, { created: true, changes: [] }],
    });
    expect(await findEnvironment(db, `${name}-x`)).toBeNull();
    const applied = await applyFolder(t, folder, '--create');
    expect(applied.environments).toEqual(dryRun.environments.map((each) => ({ ...each, written: true })));
    const { environmentId: x = 0 } = (await findEnvironment(db, `${name}-x`)) ?? {};
    expect(await stored(x)).toEqual(await stored());
  });

  test('an environment that fails is unchanged as a whole, and the others are applied', async () => {
    const { environment } = await t.addEnvironment(`${name}-ok`);
    const full = Array.from({ length: 100 }, (_, at) => schedule(`s${at}`));
    const folder = await folderOf({ [`${name}.yaml`]: { schedules: { schedules: full } } });
    await applyFolder(t, folder);
    const before = await stored();
    await writeFiles(folder, { [`${name}.yaml`]: everything, [`${name}-ok.yaml`]: everything });
    const result = await applyFolder(t, folder);
    expect(result).toMatchObject({
      exitCode: 1,
      environments: [
        { environment: name, written: false, error: expect.stringMatching(/at most 100 schedules/) },
        { environment: `${name}-ok`, written: true, error: null },
      ],
    });
    expect(await stored()).toEqual(before);
    expect((await stored(environment.environmentId)).schedules).toEqual(['nightly']);
  });
});

describe('secrets of subscriptions', () => {
  const withSecrets = (variable: string) => ({
    subscriptions: [
      {
        name: 'ops',
        url: 'https://example.com/hooks?token=${env:SUBSCRIPTION_TOKEN}',
        secret: `\${env:${variable}}`,
      },
    ],
  });
  const readSecret = async () => [...(await readSecrets(db, environmentId)).values()];

  test('secrets come from variables, are stored, and are never printed', async () => {
    const folder = await folderOf({ [`${name}.yaml`]: withSecrets('SUBSCRIPTION_SECRET') });
    const outputs = [await runCommand(t, 'apply', folder)];
    expect(await listSubscriptions(db, environmentId)).toMatchObject([
      { target: `https://example.com/hooks?token=${token}` },
    ]);
    expect(await readSecret()).toEqual([secret]);

    await writeFiles(folder, { [`${name}.yaml`]: withSecrets('SUBSCRIPTION_OTHER') });
    outputs.push(await runCommand(t, 'apply', folder, '--dry-run'));
    process.exitCode = 0;
    const { environments } = await applyFolder(t, folder);
    outputs.push(JSON.stringify(environments));
    expect(environments[0]?.changes[0]?.fields).toEqual([{ field: 'secret', before: '***', after: '***' }]);
    expect(await readSecret()).toEqual([otherSecret]);
    expect((await applyFolder(t, folder)).environments).toMatchObject([{ changes: [] }]);

    await writeFiles(folder, { [`${name}.yaml`]: { subscriptions: [subscription('ops')] } });
    const moved = await applyFolder(t, folder);
    outputs.push(JSON.stringify(moved));
    expect(moved.environments[0]?.changes[0]?.fields).toEqual([
      { field: 'receiver', before: 'https://example.com/***', after: 'https://example.com/hooks' },
    ]);
    expect(await readSecret()).toEqual([otherSecret]);
    for (const output of outputs)
      for (const each of [token, secret, otherSecret]) expect(output).not.toContain(each);
  });

  test('a variable may be in a file that NAME_FILE names', async () => {
    const folder = await folderOf({ [`${name}.yaml`]: withSecrets('SUBSCRIPTION_KEPT') });
    const path = join(folder, 'secret');
    await writeFile(path, `${secret}\n`);
    const variables = { ...t.variables, SUBSCRIPTION_KEPT_FILE: path };
    await applyFolder({ variables }, folder);
    expect(await readSecret()).toEqual([secret]);
  });

  test.each([
    [
      'another variable of the process',
      { url: 'https://example.com/?x=${env:DATABASE_URL}' },
      /begins with SUBSCRIPTION_/,
    ],
    [
      'a variable in the host',
      { url: 'https://${env:SUBSCRIPTION_TOKEN}.example.com/' },
      /must not hold a variable in its host/,
    ],
    [
      'an unset variable',
      { url: 'https://example.com/?x=${env:SUBSCRIPTION_NONE}' },
      /SUBSCRIPTION_NONE is not set/,
    ],
    ['a token in clear', { url: 'https://example.com/?token=abc' }, /token must be a variable/],
    ['a secret in clear', { url: 'https://example.com/', secret }, /secret must be a variable/],
    [
      'a secret of another form',
      { url: 'https://example.com/', secret: '${env:SUBSCRIPTION_SHORT}' },
      /must be whsec_ and 32 bytes/,
    ],
    [
      'a secret of an address',
      { email: 'ada@example.com', secret: '${env:SUBSCRIPTION_SECRET}' },
      /is for webhooks only/,
    ],
    [
      'a format of an address',
      { email: 'ada@example.com', format: 'slack' },
      /subscriptions\[0\]\.format is for webhooks only/,
    ],
    [
      'a secret of a chat',
      {
        url: '${env:SUBSCRIPTION_SLACK}',
        format: 'slack',
        secret: '${env:SUBSCRIPTION_SECRET}',
      },
      /secret is for the format standard only/,
    ],
    [
      'the URL of a chat in clear',
      { url: 'https://hooks.slack.com/services/T0', format: 'slack' },
      /url is the secret of a chat/,
    ],
    ['a private address', { url: 'https://127.0.0.1/' }, /NOTIFY_ALLOW_PRIVATE/],
  ])('%s is refused, and the refusal contains no secret', async (_, fields, message) => {
    const folder = await folderOf({ [`${name}.yaml`]: { subscriptions: [{ name: 'ops', ...fields }] } });
    const refusal: unknown = await runCommand(t, 'apply', folder).catch((error: unknown) => error);
    process.exitCode = 0;
    expect(String(refusal)).toMatch(message);
    for (const each of [token, secret, t.databaseUrl]) expect(String(refusal)).not.toContain(each);
    expect(await stored()).toEqual(nothing);
  });

  test('a subscription without a name is taken over by the file that has its receiver', async () => {
    const wish = {
      channel: 'webhook',
      target: 'https://example.com/hooks',
      outcomes: ['failed'],
      kinds: ['load'],
    } as const;
    const { secret: first, subscription: before } = await addSubscription(t.system, environmentId, wish, {
      allowPrivate: false,
    });
    const folder = await folderOf({ [`${name}.yaml`]: { subscriptions: [subscription('ops')] } });
    expect(linesOf(await applyFolder(t, folder))).toEqual([`${name} ~ subscriptions ops`]);
    const { subscriptionId } = before;
    expect(await listSubscriptions(db, environmentId)).toMatchObject([{ subscriptionId, name: 'ops' }]);
    expect(await readSecret()).toEqual([first]);
  });

  test('a webhook that becomes a chat loses its secret, a chat keeps its subscription, and the way back makes a secret', async () => {
    const folder = await folderOf({ [`${name}.yaml`]: withSecrets('SUBSCRIPTION_SECRET') });
    await applyFolder(t, folder);
    const outputs: string[] = [];
    const become = async (fields: object) => {
      const file = { subscriptions: [{ name: 'ops', ...fields }] };
      await writeFiles(folder, { [`${name}.yaml`]: file });
      const applied = await applyFolder(t, folder);
      outputs.push(JSON.stringify(applied));
      expect((await applyFolder(t, folder, '--prune')).environments).toMatchObject([{ changes: [] }]);
      const [shown] = await listSubscriptions(db, environmentId);
      return { fields: applied.environments[0]?.changes[0]?.fields, shown, secrets: await readSecret() };
    };
    const url = '${env:SUBSCRIPTION_SLACK}';
    const slack = await become({ url, format: 'slack' });
    expect(slack).toMatchObject({
      fields: [
        { field: 'format', before: 'standard', after: 'slack' },
        { field: 'receiver', before: 'https://example.com/***', after: url },
      ],
      shown: { name: 'ops', format: 'slack', target: `https://hooks.slack.com/services/${token}` },
      secrets: [],
    });
    const teams = await become({ url, format: 'teams' });
    expect(teams).toMatchObject({
      fields: [{ field: 'format', before: 'slack', after: 'teams' }],
      shown: { subscriptionId: slack.shown?.subscriptionId, format: 'teams' },
      secrets: [],
    });
    const { shown, secrets } = await become({ url: 'https://example.com/hooks' });
    expect(shown).toMatchObject({ name: 'ops', format: 'standard' });
    expect(secrets).toEqual([expect.stringMatching(/^whsec_/)]);
    for (const output of outputs) expect(output).not.toContain(token);
  });

  test('a webhook that becomes an address loses its secret', async () => {
    const folder = await folderOf({ [`${name}.yaml`]: withSecrets('SUBSCRIPTION_SECRET') });
    await applyFolder(t, folder);
    const file = { subscriptions: [{ name: 'ops', email: 'ada@example.com' }] };
    await writeFiles(folder, { [`${name}.yaml`]: file });
    await applyFolder(t, folder);
    expect(await listSubscriptions(db, environmentId)).toMatchObject([{ name: 'ops', channel: 'email' }]);
    expect(await readSecret()).toEqual([]);
  });
});

test('applications to one environment at the same time follow one another', async () => {
  const folders = await Promise.all(
    ['a', 'b', 'c'].map((letter) => {
      const subscriptions = Array.from({ length: 40 }, (_, at) => subscription(`${letter}${at}`));
      const rules = { users: { properties: { [letter]: { type: 'text' } } } };
      return folderOf({ [`${name}.yaml`]: { rules, subscriptions } });
    }),
  );
  const results = await Promise.all(folders.map((folder) => applyFolder(t, folder)));
  const errors = results.map(({ environments }) => environments[0]?.error ?? null);
  expect(errors.filter((error) => error !== null)).toEqual([
    expect.stringMatching(/at most 100 subscriptions/),
  ]);
  const { rules, subscriptions } = await stored();
  expect(subscriptions).toHaveLength(80);
  const applied = ['a', 'b', 'c'].filter((_, at) => errors[at] === null);
  expect(Object.keys(rules?.users?.properties ?? {}).toSorted()).toEqual(applied);
});

test('a dry run writes nothing, an application makes exactly its changes, and the next finds none', async () => {
  const keys = fc.constantFrom('a', 'b', 'constructor', 'to.b', '__proto__');
  const slugs = fc.constantFrom('a', 'b', 'c', 'd-1');
  const list = <T>(items: fc.Arbitrary<T>, of: (item: T) => unknown) =>
    fc.uniqueArray(items, { maxLength: 4, selector: of });
  const rule = fc.record(
    { type: fc.constantFrom('text', 'number'), required: fc.boolean(), minimum: fc.constant(-0) },
    { requiredKeys: [] },
  );
  const entity = fc.record(
    {
      unknown: fc.constantFrom('allow', 'report'),
      properties: fc.dictionary(
        keys,
        rule.map((each) => ('minimum' in each ? { ...each, type: 'number' } : each)),
      ),
    },
    { requiredKeys: [] },
  );
  const file = fc.record(
    {
      definitions: fc.record({
        features: list(fc.record({ key: keys, display_name: fc.constantFrom('A', 'B') }), ({ key }) => key),
        flows: list(fc.record({ key: slugs, title: fc.constantFrom('A', 'B') }), ({ key }) => key),
      }),
      rules: fc.record({ users: entity, events: entity }, { requiredKeys: [] }),
      schedules: fc.record({
        timezone: fc.constantFrom('UTC', 'Europe/Berlin'),
        schedules: list(
          fc.tuple(slugs, fc.constantFrom('x', 'y')).map(([name, pattern]) => schedule(name, pattern)),
          (each) => each.name,
        ),
      }),
      subscriptions: list(
        fc.record({
          name: slugs,
          email: fc.constantFrom('a@example.com', 'b@example.com'),
          on: fc.constantFrom(['failed'], ['completed', 'failed'], ['failed', 'completed']),
        }),
        ({ name }) => name,
      ),
    },
    { requiredKeys: [] },
  );
  const sections = [
    definitionsSection(await t.system.definitionLists()),
    ...(await Promise.all(capabilities.flatMap((each) => each.declares?.() ?? []))),
  ];
  const { config, optionTable, exportOptions } = t.system;
  const settings = { config, cli: { processEnv: {}, optionTable, exportOptions } };
  let round = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(file, fc.boolean()), { minLength: 2, maxLength: 4 }),
      async (steps) => {
        const { environment } = await t.addEnvironment(`${name}-${++round}`);
        const read = () => stored(environment.environmentId);
        const folder = await folderOf({});
        for (const [content, prune] of steps) {
          await writeFiles(folder, { [`${environment.name}.json`]: content });
          const { files, problems } = await readFiles(await findFiles(folder, undefined), sections, settings);
          expect(problems).toEqual([]);
          const [declared] = files as [EnvironmentFile];
          const before = await read();
          const { changes } = await planFile(db, declared, { prune });
          expect(await read()).toEqual(before);
          const applied = await applyFile(t.system, declared, { prune, isConfirmed: () => true });
          expect(applied.changes).toEqual(changes);
          expect((await planFile(db, declared, { prune })).changes).toEqual([]);
          const after = await read();
          const { definitions, schedules, subscriptions } = content;
          const lists = [
            [after.features, before.features, definitions?.features.map(({ key }) => key)],
            [after.schedules, before.schedules, schedules?.schedules.map((each) => each.name)],
            [after.subscriptions, before.subscriptions, subscriptions?.map((each) => each.name)],
          ] as const;
          for (const [now, earlier, declared] of lists) {
            const kept = prune && declared !== undefined ? [] : earlier;
            expect(new Set<unknown>(now)).toEqual(new Set<unknown>([...kept, ...(declared ?? [])]));
          }
        }
      },
    ),
    { numRuns: runs(30) },
  );
});
