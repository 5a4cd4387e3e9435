import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { SegmentDetail } from '../../../src/lookups/api.ts';
import { apply, segmentItem } from '../../support/servers/definitions.ts';
import { type ErrorBody, openServer, refusalOf } from '../../support/servers/http.ts';
import type { Tenant } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer();
const neighbour = await t.addEnvironment('neighbour');

const payers = { key: 'payers', title: 'Payers', definition: { property: 'plan', equals: 'pro' } };

/** Creates a segment. Default title: the key. */
async function create(
  more: { readonly key?: string } & Readonly<Record<string, unknown>> = {},
  { key }: Pick<Tenant, 'key'> = t,
): Promise<SegmentDetail> {
  const json = { ...payers, ...(more.key !== undefined && { title: more.key }), ...more };
  const { status, body } = await server.json<SegmentDetail>('/v1/segments', { json, key });
  expect(status).toBe(201);
  return body;
}

const at = ({ id }: { readonly id: number }) => `/v1/segments/${id}`;
const show = async (segment: { readonly id: number }) => (await server.json<SegmentDetail>(at(segment))).body;
const put = (json: object) => ({ method: 'PUT', json });

async function messages(path: string, json: object, method = 'POST'): Promise<string[]> {
  const { status, body } = await server.json<ErrorBody>(path, { method, json });
  expect(status).toBe(400);
  return body.errors.map(({ message }) => message);
}

describe('a segment of the API', () => {
  test('a segment of the API is created with the defaults of the file, changed except for its key, and deleted', async () => {
    const segment = await create();
    expect(segment).toEqual({
      ...{ ...payers, id: segment.id, made_by: 'api', words: [{ depth: 0, text: 'plan is "pro"' }] },
      ...{ usage: 'analytics', category: 'custom', is_hidden: false, is_protected: false, status: 'active' },
    });
    expect(await show(segment)).toEqual(segment);
    const change = { title: 'Pros', category: 'Plans', definition: { event: 'paid' } };
    const changed = await server.json<SegmentDetail>(at(segment), put(change));
    expect(changed.body).toEqual({ ...segment, ...change, words: [{ depth: 0, text: 'did "paid"' }] });
    expect(await show(segment)).toEqual(changed.body);
    expect((await server.json(at(segment), { method: 'DELETE' })).status).toBe(204);
    expect(await refusalOf(server, at(segment))).toEqual([404, ['not_found']]);
    expect((await create()).id).toBeGreaterThan(segment.id);
  });

  test('a wrong segment is refused with every fault', async () => {
    const wrong = { key: 'a b', title: '', is_hidden: 'no', definition: { property: 'plan' }, extra: 1 };
    expect(await messages('/v1/segments', wrong)).toEqual([
      expect.stringMatching(/^There is no "extra" here/),
      'key must be 1 to 100 letters, digits, `_`, `.` and `-`, the first a letter or a digit',
      'title must be 1 to 200 characters on one line',
      'is_hidden must be true or false',
    ]);
    const unclear = { ...payers, definition: { all: [{ property: 'plan' }, { event: 'x', at_least: 0 }] } };
    expect(await messages('/v1/segments', unclear)).toEqual([
      expect.stringContaining('definition.all[0] has no operator'),
      expect.stringContaining('definition.all[1].at_least must be a whole number'),
    ]);
    expect(await messages('/v1/segments', { ...payers, title: '\ud800' })).toEqual([
      'title must be 1 to 200 characters on one line',
    ]);
    const { id } = await create({ key: 'taken' });
    expect(await messages(`/v1/segments/${id}`, { ...payers }, 'PUT')).toEqual([
      expect.stringMatching(/^There is no "key" here/),
    ]);
  });

  test('a segment is refused if another has its key or its title', async () => {
    const first = await create({ key: 'first', title: 'Once' });
    const other = await create({ key: 'other' });
    const sameKey = await server.json<ErrorBody>('/v1/segments', {
      json: { ...payers, key: 'first', title: 'New' },
    });
    expect([sameKey.status, sameKey.body.errors[0]?.message]).toEqual([
      409,
      'There is a segment with the key first; choose another',
    ]);
    const definition = payers.definition;
    for (const [path, options] of [
      ['/v1/segments', { json: { key: 'third', title: 'ONCE', definition } }],
      [at(other), put({ title: 'Once', definition })],
    ] as const) {
      const { status, body } = await server.json<ErrorBody>(path, options);
      expect([status, body.errors]).toMatchObject([
        409,
        [{ error_code: 'segment_exists', message: 'The segment first has this title; choose another' }],
      ]);
    }
    expect((await server.json(at(first), put({ title: 'Once', definition }))).status).toBe(200);
  });

  test('a protected segment is not deleted until its protection ends', async () => {
    const fields = { title: 'guarded', definition: payers.definition };
    const segment = await create({ key: 'guarded', is_protected: true });
    expect(await refusalOf(server, at(segment), { method: 'DELETE' })).toEqual([409, ['definition_locked']]);
    expect((await server.json(at(segment), put({ ...fields, is_protected: false }))).status).toBe(200);
    expect((await server.json(at(segment), { method: 'DELETE' })).status).toBe(204);
  });

  test('a segment is out of reach of other environments', async () => {
    const segment = await create({ key: 'ours' });
    const { key } = neighbour;
    const { key: _, ...fields } = payers;
    for (const [path, options] of [
      [at(segment), {}],
      [at(segment), put(fields)],
      [at(segment), { method: 'DELETE' }],
    ] as const) {
      expect(await refusalOf(server, path, { ...options, key })).toEqual([404, ['not_found']]);
    }
    expect(await create({ key: 'ours' }, neighbour)).toMatchObject({ key: 'ours' });
    expect(await show(segment)).toEqual(segment);
  });
});

// proves: segments-made
test('a segment of the definitions file is changed and deleted only there', async () => {
  const segment = await create({ key: 'both' });
  await apply(t, t, { segments: [segmentItem('both')] });
  const { key: _, ...fields } = payers;
  for (const options of [put(fields), { method: 'DELETE' }]) {
    const { status, body } = await server.json<ErrorBody>(at(segment), options);
    expect([status, body.errors]).toEqual([
      409,
      [
        expect.objectContaining({
          error_code: 'definition_locked',
          message: 'The definitions file defines this segment: change it in the file',
          details: 'both',
        }),
      ],
    ]);
  }
  expect(await show(segment)).toMatchObject({ id: segment.id, made_by: 'file', title: 'Segment both' });
});

// proves: segments-made
test('a definition may be a text in YAML, and a wrong one is refused with the lines of its faults', async () => {
  const definition = 'any:\n  - property: plan\n    equals: pro\n  - event: paid\n';
  const segment = await create({ key: 'text', definition });
  expect(segment.definition).toEqual({ any: [{ property: 'plan', equals: 'pro' }, { event: 'paid' }] });
  const wrong = 'any:\n  - property: plan\n  - event: paid\n    at_least: 0\n';
  for (const path of ['/v1/segments', '/v1/segments/preview']) {
    const json = path.endsWith('preview')
      ? { definition: wrong }
      : { ...payers, key: 'x', definition: wrong };
    const { status, body } = await server.json<ErrorBody>(path, { json });
    expect([status, body.errors.map(({ details }) => details)]).toEqual([
      400,
      ['definition: line 2, column 5', 'definition: line 4, column 5'],
    ]);
  }
});

// proves: leaving-client
test('a count of a segment ends as soon as its caller leaves', async () => {
  const { db } = t.system;
  const counts = async () =>
    (
      await sql`
        select 1 from pg_stat_activity
        where datname = current_database() and application_name = 'sluice segment' and wait_event_type = 'Lock'`.execute(
        db,
      )
    ).rows.length;
  const ended = async (status: number) =>
    (await (await server.fetch('/metrics', { key: null })).text()).includes(
      `sluice_http_requests_total{method="POST",route="/v1/segments/preview",status="${status}"}`,
    );
  await db.transaction().execute(async (transaction) => {
    await sql`lock table users in access exclusive mode`.execute(transaction);
    const leaving = new AbortController();
    const json = { definition: payers.definition };
    const answer = server.fetch('/v1/segments/preview', { json, signal: leaving.signal }).catch(() => 'left');
    await waitFor('the count to wait', async () => (await counts()) === 1);
    leaving.abort();
    expect(await answer).toBe('left');
    // The request ends with status 408, because the client has left. Status 503 would mean that the
    // count took too long.
    await waitFor('the count to end', () => ended(408));
    expect([await counts(), await ended(503)]).toEqual([0, false]);
  });
});
