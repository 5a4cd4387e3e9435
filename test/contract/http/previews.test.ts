import { beforeAll, describe, expect, test } from 'vitest';
import type { DeletionPreview as Counts } from '../../../src/deletion/api.ts';
import type { ExportPreview } from '../../../src/export/api.ts';
import { apply, segmentItem } from '../../support/servers/definitions.ts';
import { openServer, refusalOf, type TestServer } from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';

/**
 * Tests of requests that show the effect of something without changing data: segments, and previews
 * of deletions and exports.
 */

const { t, server } = await openServer({ worker: true });
const neighbour = await t.addEnvironment('neighbour');
beforeAll(async () => {
  await fill();
});

const json = (body: unknown, method = 'POST') => ({ method, json: body });

async function send(path: string, body: object, { key }: { readonly key: string } = t): Promise<void> {
  expect((await server.json(path, { ...json(body), key })).status).toBe(202);
}

const day = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * day).toISOString();
const power = { event: 'exported', at_least: 2 };

async function fill(): Promise<void> {
  await send('/v1/identify', { user_id: 'a1', metadata: { plan: 'pro' }, company: { company_id: 'acme' } });
  await send('/v1/identify', { user_id: 'a2', metadata: { plan: 'pro' }, company: { company_id: 'acme' } });
  await send('/v1/identify', { user_id: 'b%_1', metadata: { plan: 'free' } });
  for (const at of [0, 1, 1, 50]) {
    await send('/v1/track', { user_id: 'a1', event_name: 'exported', inserted_at: daysAgo(at) });
  }
  await send('/v1/track', { user_id: 'a1', event_name: '<b>opened</b>', inserted_at: daysAgo(0) });
  await send('/v1/track', { user_id: 'nobody', event_name: 'opened' });
  await send('/v1/identify', { user_id: 'a1' }, neighbour);
  await send('/v1/track', { user_id: 'a1', event_name: 'exported' }, neighbour);
  const segments = [
    segmentItem('pro'),
    segmentItem('power', { definition: power }),
    segmentItem('free', { definition: { property: 'plan', equals: 'free' } }),
  ];
  await apply(t, t, { segments });
}

async function ask<T>(path: string, options: Parameters<TestServer['json']>[1] = {}): Promise<T> {
  const { status, body } = await server.json<T>(path, options);
  expect([path, status]).toEqual([path, 200]);
  return body;
}

async function segmentIds(): Promise<Record<string, number>> {
  const lookup = await ask<{ data: { id: number; title: string }[] }>(
    '/api/v1/analytics/exports/lookups/segments',
  );
  return Object.fromEntries(lookup.data.map(({ id, title }) => [title.replace('Segment ', ''), id]));
}

describe('segments', () => {
  test('a segment is shown with its definition, as JSON and in words', async () => {
    const { power: id } = await segmentIds();
    expect(await ask(`/v1/segments/${id}`)).toMatchObject({
      key: 'power',
      definition: power,
      words: [{ depth: 0, text: 'did at least 2 times "exported"' }],
    });
    expect(await refusalOf(server, '/v1/segments/999')).toEqual([404, ['not_found']]);
    expect(await refusalOf(server, `/v1/segments/${id}`, { key: neighbour.key })).toEqual([
      404,
      ['not_found'],
    ]);
  });

  test('a definition that is not stored can be previewed, and a wrong one is refused with every fault', async () => {
    const definition = { any: [power, { property: 'plan', equals: 'free' }] };
    expect(await ask('/v1/segments/preview', json({ definition }))).toMatchObject({
      count: 2,
      user_ids: ['a1', 'b%_1'],
      words: [{ text: 'any of these holds' }, { depth: 1 }, { depth: 1 }],
    });
    const wrong = { all: [{ property: 'plan' }, { event: 'x', at_least: 0 }] };
    expect(await refusalOf(server, '/v1/segments/preview', json({ definition: wrong }))).toEqual([
      400,
      ['invalid_field', 'invalid_field'],
    ]);
    for (const [body, code] of [
      [{}, 'missing_field'],
      [{ definition, extra: 1 }, 'invalid_field'],
      [{ definition: null }, 'invalid_field'],
    ]) {
      expect(await refusalOf(server, '/v1/segments/preview', json(body))).toEqual([400, [code]]);
    }
  });
});

// proves: people-search
test('a search has all profiles whose id, name or e-mail contains the text', async () => {
  const named = await t.addEnvironment('named');
  const people = {
    'p-1': { name: 'Ada Lovelace', email: 'ada@example.com' },
    'p-2': { first_name: 'Ärzte', lastName: 'O%B', motto: 'ada' },
    'P-3': { email: 'x@ADA.example', username: 7 },
    'ada-4': {},
    other: { plan: 'Ada' },
  };
  for (const [user_id, metadata] of Object.entries(people)) {
    await send('/v1/identify', { user_id, metadata, company: { company_id: 'Adamant' } }, named);
  }
  await send('/v1/identify', { user_id: 'ada-of-another', metadata: { name: 'Ada' } }, neighbour);
  const find = async (path: string, text: string) => {
    const query = `${path}?search=${encodeURIComponent(text)}`;
    const { body } = await server.json<{ data: { user_id?: string; company_id: string }[] }>(query, named);
    return body.data.map(({ user_id, company_id }) => user_id ?? company_id);
  };
  for (const [text, ids] of [
    ['ada', ['P-3', 'ada-4', 'p-1']],
    ['P-', ['P-3', 'p-1', 'p-2']],
    ['ärz', ['p-2']],
    ['%', ['p-2']],
    ['_', []],
    ['7', ['P-3']],
    ['lovelaceada', []],
  ] as const) {
    expect([text, await find('/v1/users', text)]).toEqual([text, ids]);
  }
  expect(await find('/v1/companies', 'DAM')).toEqual(['Adamant']);
  expect(await refusalOf(server, '/v1/users?search=%00')).toEqual([400, ['invalid_field']]);
});

describe('profiles by the beginning of their id', () => {
  test.each([
    ['a', ['a1', 'a2']],
    ['b%_', ['b%_1']],
    ['%', []],
    ['A', []],
  ])('the prefix %j lists the profiles %j, alone and with a property', async (prefix, ids) => {
    const list = async (more: string) => {
      const query = `id_prefix=${encodeURIComponent(prefix)}${more}`;
      const page = await ask<{ data: { user_id: string }[] }>(`/v1/users?${query}`);
      return page.data.map(({ user_id }) => user_id);
    };
    expect(await list('')).toEqual(ids);
    expect(await list('&property=plan:pro')).toEqual(ids.filter((id) => id.startsWith('a')));
  });
});

describe('the preview of an export', () => {
  const exportsPath = '/api/v1/analytics/exports';
  const preview = (body: object) => ask<ExportPreview>(`${exportsPath}/preview`, json(body));

  // proves: previews
  test.each([
    { format: 'csv', compression: 'none' },
    { format: 'ndjson', compression: 'none' },
    { format: 'parquet', event_type: ['users', 'exported'] },
    {
      format: 'ndjson',
      compression: 'none',
      event_type: ['events'],
      user_id: ['a1'],
      exclusions: 'event:ex*',
    },
  ])('the preview of %j counts the rows of the export, and shows its first rows unchanged', async (body) => {
    const before = await preview(body);
    const { body: job } = await server.json<{ job_id: string }>(exportsPath, json(body));
    const result = await waitFor('the export to end', async () => {
      const detail = await ask<{
        status: string;
        rows: number;
        presigned_urls: { filename: string; url: string }[];
      }>(`${exportsPath}/jobs/${job.job_id}`);
      return detail.status === 'completed' && detail;
    });
    expect(before).toMatchObject({ rows: result.rows, is_exact: true, warnings: [] });
    expect(before.files.map(({ first_rows, rows }) => [first_rows.length, rows])).toEqual(
      before.files.map(({ rows }) => [Math.min(rows, 5), rows]),
    );
    if (body.compression !== 'none') return;
    const written = await Promise.all(
      before.files.map(async ({ dataset }) => {
        const file = result.presigned_urls.find(({ filename }) => filename.includes(dataset));
        return file === undefined ? '' : (await fetch(file.url)).text();
      }),
    );
    expect(before.bytes).toBe(written.reduce((sum, text) => sum + Buffer.byteLength(text), 0));
    for (const [at, { header, first_rows }] of before.files.entries()) {
      const lines = [...(header === null ? [] : [header]), ...first_rows];
      expect(written[at]?.split('\n').slice(0, lines.length)).toEqual(lines);
    }
  });

  test('the preview of an export starts nothing, and has the refusals of the export', async () => {
    const jobs = async () => (await server.fetch(`${exportsPath}/jobs`)).headers.get('x-total-count');
    const before = await jobs();
    await preview({});
    expect(await jobs()).toBe(before);
    const wrong = { from: '2026-02-30', segment_id: 999, event_type: ['no_such_event'] };
    const [status, codes] = await refusalOf(server, `${exportsPath}/preview`, json(wrong));
    expect([status, [...codes].sort()]).toEqual([
      400,
      ['invalid_date', 'unknown_event_type', 'unknown_segment'],
    ]);
  });
});

describe('the preview of a deletion', () => {
  // proves: previews
  test.each([
    ['companies', ['acme', 'globex'], { profiles: 1, not_found: 1, events: 5, users: 2 }],
    ['users', ['a1', 'nobody', 'x'], { profiles: 1, not_found: 1, events: 6, users: 0 }],
  ] as const)(
    'the preview of a deletion of %s counts the rows that the deletion then removes',
    async (entity, ids, expected) => {
      const body = { [entity]: ids };
      const trial = json({ ...body, dry_run: true }, 'DELETE');
      const counts = await ask<Counts>(`/v1/${entity}`, trial);
      expect(counts).toMatchObject({ requested: ids.length, is_complete: true, ...expected });
      const { body: job } = await server.json<{ job_id: string }>(`/v1/${entity}`, json(body, 'DELETE'));
      const result = await waitFor('the deletion to end', async () => {
        const detail = await ask<{ status: string; counts: object; removed: { events: number } }>(
          `/v1/background_jobs/${job.job_id}`,
        );
        return detail.status === 'completed' && detail;
      });
      expect(result.counts).toMatchObject({ requested: ids.length, not_found: expected.not_found });
      expect(result.removed.events).toBe(expected.events);
      const after = await ask<Counts>(`/v1/${entity}`, trial);
      expect(after).toMatchObject({ profiles: 0, events: 0, users: 0, not_found: ids.length });
    },
  );

  test('the preview of a deletion counts nothing of another environment', async () => {
    const trial = json({ users: ['b%_1'], dry_run: true }, 'DELETE');
    const { body } = await server.json<Counts>('/v1/users', { ...trial, key: neighbour.key });
    expect(body).toMatchObject({ profiles: 0, not_found: 1 });
  });

  test('a misspelt preview of a deletion is refused and deletes nothing', async () => {
    const jobs = async () =>
      (await server.fetch('/v1/background_jobs?type=delete_users')).headers.get('x-total-count');
    const before = await jobs();
    const misspelt = json({ users: ['u1'], dryrun: true }, 'DELETE');
    expect(await refusalOf(server, '/v1/users', misspelt)).toEqual([400, ['invalid_field']]);
    expect(await jobs()).toBe(before);
  });
});
