import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { MAX_WHERE_BYTES } from '../../../src/capabilities/where/where.ts';
import type { ExportJob } from '../../../src/export/api.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import { type ErrorBody, openServer } from '../../support/servers/http.ts';
import { runCommand } from '../../support/servers/run-command.ts';

const exportsPath = '/api/v1/analytics/exports';
const quote = `it's "100%" \\ $1 -- ; drop table users`;

const { t, server } = await openServer({ worker: true });

const users = [
  { user_id: 'u1', company_id: 'acme', plan: 'pro', seats: '12' },
  { user_id: 'u2', company_id: 'acme', plan: 'free', seats: 3 },
  { user_id: 'u3', company_id: 'globex', plan: 'pro', [quote]: quote },
  { user_id: 'u4', plan: 'team' },
];

beforeAll(async () => {
  await fill(t.key);
  // In another environment, the same ids have different values.
  const other = await t.addEnvironment('other');
  await server.json('/v1/identify', { key: other.key, json: { user_id: 'u4', metadata: { plan: 'pro' } } });
  await track(other.key, 'u4', 'paid');
});

async function fill(key: string): Promise<void> {
  const lines = (items: readonly object[]) => items.map((item) => `${JSON.stringify(item)}\n`).join('');
  const type = 'application/x-ndjson';
  await server.load(lines(users), { key, type });
  const companies = ['acme', 'globex'].map((id) => ({ company_id: id, tier: id }));
  await server.load(lines(companies), { key, type });
  for (const user of ['u1', 'u1', 'u3', 'without_profile']) await track(key, user, 'paid');
  await track(key, 'u2', 'left');
}

async function track(key: string, user_id: string, event_name: string): Promise<void> {
  const { status } = await server.json('/v1/track', { key, json: { user_id, event_name, metadata: {} } });
  expect(status).toBe(202);
}

async function run(json: object, key = t.key): Promise<ExportJob> {
  const { status, body } = await server.json<{ job_id: string }>(exportsPath, { key, json });
  expect(status, JSON.stringify(body)).toBe(201);
  await server.ended(body.job_id, key);
  return (await server.json<ExportJob>(`${exportsPath}/jobs/${body.job_id}`, { key })).body;
}

/** Returns the contents of the files as latin1 strings, by file name. */
async function filesOf({ presigned_urls }: ExportJob): Promise<Record<string, string>> {
  const files = presigned_urls.map(async ({ filename, url }) => {
    const bytes = await (await server.fetch(url, { key: null })).arrayBuffer();
    return [filename, Buffer.from(bytes).toString('latin1')] as const;
  });
  return Object.fromEntries(await Promise.all(files));
}

/**
 * Returns the ids of the exported users, the exported companies, and the users of the exported
 * events.
 */
async function idsOf(json: object, key = t.key) {
  const files = await filesOf(await run({ compression: 'none', ...json }, key));
  const ids = (name: string, id: string) =>
    (files[`${name}.ndjson`] ?? '')
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as Record<string, string>)[id] ?? '']));
  return {
    users: ids('users', 'user_id'),
    companies: ids('companies', 'company_id'),
    events: ids('events', 'user_id').sort(),
  };
}

async function problemsOf(json: object) {
  const { status, body } = await server.json<ErrorBody>(exportsPath, { json });
  expect(status, JSON.stringify(body)).toBe(400);
  return body.errors.map(({ message, details }) => [message, details]);
}

test('a condition exports the users that meet it, with their companies and events', async () => {
  const where = { property: 'plan', equals: 'pro' };
  expect(await idsOf({ where })).toEqual({
    users: ['u1', 'u3'],
    companies: ['acme', 'globex'],
    events: ['u1', 'u1', 'u3'],
  });
  expect(await idsOf({ where: { event: 'left' } })).toEqual({
    users: ['u2'],
    companies: ['acme'],
    events: ['u2'],
  });
  // Users without a profile do not count. Events and profiles of another environment do not count
  // either.
  expect(await idsOf({ where: { not: { event: 'paid' } } })).toMatchObject({
    users: ['u2', 'u4'],
    events: ['u2'],
  });
});

const definitions = [
  { all: [{ property: 'plan', in: ['pro', 'team'] }, { not: { event: 'paid', at_least: 2 } }] },
  {
    any: [
      { property: 'seats', greater_than: 2 },
      { company_property: 'tier', equals: 'globex' },
    ],
  },
  { property: quote, equals: quote },
  { event: quote, where: [{ property: quote, contains: quote }] },
];

const shapes = [
  { format: 'ndjson', compression: 'none' },
  { format: 'ndjson', compression: 'none', layout: 'stream' },
];

test.each(definitions.map((definition, n) => [definition, n === 0 ? shapes : shapes.slice(0, 1)] as const))(
  'an export with the condition %j has the files of its segment',
  async (definition, each) => {
    const key = `s${definitions.indexOf(definition)}`;
    const segment = await server.json<{ id: number }>('/v1/segments', {
      json: { key, title: key, definition },
    });
    expect(segment.status).toBe(201);
    for (const shape of each) {
      const [bySegment, byCondition, all] = await Promise.all([
        run({ ...shape, segment_id: segment.body.id }).then(filesOf),
        run({ ...shape, where: definition }).then(filesOf),
        run(shape).then(filesOf),
      ]);
      expect(byCondition).toEqual(bySegment);
      expect(all).not.toEqual(bySegment);
    }
  },
);

test('a condition is combined with every other filter', async () => {
  const where = { property: 'plan', in: ['pro', 'team'] };
  const { body: segment } = await server.json<{ id: number }>('/v1/segments', {
    json: { key: 'paying', title: 'Paying', definition: { event: 'paid' } },
  });
  expect((await idsOf({ where, segment_id: segment.id })).users).toEqual(['u1', 'u3']);
  expect((await idsOf({ where, company_id: 'globex' })).users).toEqual(['u3']);
  expect((await idsOf({ where, user_id: ['u2', 'u4'] })).users).toEqual(['u4']);
  expect((await idsOf({ where, exclusions: `segment:${segment.id}` })).users).toEqual(['u4']);
  expect(await idsOf({ where, event_type: ['left', 'paid'], exclusions: 'user:u1' })).toEqual({
    users: [],
    companies: [],
    events: ['u3'],
  });
});

test('text in YAML or JSON is the same condition, and the manifest asks for the export again', async () => {
  const where = { property: 'plan', equals: 'pro' };
  const job = await run({ where: 'property: plan   # of today\nequals: pro\n' });
  const url = job.manifest?.url ?? '';
  const { options } = (await (await server.fetch(url, { key: null })).json()) as { options: object };
  expect(options).toMatchObject({ where });
  expect((await run(options)).rows).toBe(job.rows);
  expect((await idsOf({ where: JSON.stringify(where) })).users).toEqual(['u1', 'u3']);
  const { body: detail } = await server.json(`/v1/background_jobs/${job.job_id}`);
  expect(detail).toMatchObject({ options: { where } });
});

test('a mistake is refused with the request, at the place that segments name', async () => {
  for (const definition of [
    {},
    [],
    { all: [] },
    { all: [{ property: 'plan' }, { event: 'x', at_least: 0, wher: 1 }] },
    { not: { property: 'last_seen_at', equals: 'x' } },
    { property: 'a b', 'equ als': 1 },
    { property: 'p\0', in: ['\ud800'] },
    Array.from({ length: 20 }).reduce<object>((inner) => ({ not: inner }), { event: 'x' }),
    { any: Array.from({ length: 101 }, () => ({ event: 'x' })) },
    { property: 'x', in: Array.from({ length: 1_001 }, String) },
  ]) {
    const refusal = await server.json<ErrorBody>('/v1/segments/preview', { json: { definition } });
    if (Array.isArray(definition)) {
      expect(await problemsOf({ where: definition })).toEqual([['where must be an object or text', 'where']]);
      continue;
    }
    const ofSegment = refusal.body.errors.map(({ message, details }) =>
      [message, details].map((text) => text.replace(/^definition/, 'where')),
    );
    expect(ofSegment).not.toEqual([]);
    expect(await problemsOf({ where: definition })).toEqual(ofSegment);
  }
  expect(
    await problemsOf({ where: 'all:\n  - property: plan\n  - event: x\n    at_least: 0' }),
  ).toMatchObject([
    [expect.stringMatching(/^where\.all\[0\] has no operator/), 'where: line 2, column 5'],
    [expect.stringMatching(/^where\.all\[1\]\.at_least must be/), 'where: line 4, column 5'],
  ]);
  expect(await problemsOf({ where: 'plan' })).toMatchObject([
    [expect.stringMatching(/^where must be an object with one of/), 'where: line 1, column 1'],
  ]);
});

test('a condition that is too long is refused, as an object and as text', async () => {
  const where = { property: 'x', in: Array.from({ length: 100 }, () => 'x'.repeat(1_000)) };
  const tooLong = [
    [`where has more than ${MAX_WHERE_BYTES} bytes. Make it a segment, and name that in segment_id`, 'where'],
  ];
  expect(await problemsOf({ where })).toEqual(tooLong);
  expect(await problemsOf({ where: JSON.stringify(where) })).toEqual(tooLong);
});

test('an increment has only users that still meet the condition, and none with removals', async () => {
  const { key } = await t.addEnvironment('increments');
  await fill(key);
  const where = { property: 'plan', equals: 'pro' };
  const { cursor: since } = await run({ where }, key);
  for (const [user_id, plan] of [
    ['u1', 'free'],
    ['u2', 'pro'],
  ]) {
    await server.json('/v1/identify', { key, json: { user_id, metadata: { plan } } });
  }
  expect((await idsOf({ where, since }, key)).users).toEqual(['u2']);
  expect(await problemsOf({ where, since, include_removed: true })).toEqual([
    [expect.stringContaining('include_removed cannot tell all that was removed with this where'), 'where'],
  ]);
});

test('the command line exports by a condition, and refuses a wrong one before it writes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-where-'));
  cleanUpAfter('test', () => rm(folder, { recursive: true, force: true }));
  const out = join(folder, 'out');
  const command = ['export', '--compression', 'none', '--event-type', 'users', '--out'];
  await runCommand(t, ...command, out, '--where', '{property: plan, equals: team}');
  expect(JSON.parse(await readFile(join(out, 'users.ndjson'), 'utf8'))).toMatchObject({ user_id: 'u4' });
  const wrong = runCommand(t, ...command, join(folder, 'no'), '--where', '{property: plan}');
  await expect(wrong).rejects.toThrow(/where has no operator/);
  const all = runCommand(t, 'export', '--out', join(folder, 'all'), '--everything', '--where', '{event: x}');
  await expect(all).rejects.toThrow(/--everything takes no filter/);
});

test('a schedule has a condition, and its file is refused at the line of a mistake', async () => {
  const put = (yaml: string) =>
    server.json<ErrorBody>('/v1/schedules/pro', { method: 'PUT', json: { file: yaml } });
  const yaml = 'cron: "@daily"\nexport:\n  where:\n    all:\n      - property: plan\n';
  const refusal = await put(yaml);
  expect(refusal.status).toBe(400);
  expect(refusal.body.errors).toMatchObject([
    { details: 'file: line 5, column 9', message: expect.stringContaining('where.all[0] has no operator') },
  ]);
  const stored = await put(`${yaml}        equals: pro\n`);
  expect(stored.body).toMatchObject({
    definition: { export: { where: { all: [{ property: 'plan', equals: 'pro' }] } } },
  });
});
