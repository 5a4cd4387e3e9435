import type { Static } from 'typebox';
import { describe, expect, test } from 'vitest';
import type { savedMapping } from '../../../src/api/mapping.ts';
import type { Inspection } from '../../../src/api/upload.ts';
import { createApiKey } from '../../../src/postgres/stores/api-keys.ts';
import { createEnvironment } from '../../../src/postgres/stores/environments.ts';
import { type ErrorBody, form, openServer, refusalOf, walkPages } from '../../support/http.ts';

type Mapping = Static<typeof savedMapping.schema>;

const { t, server } = await openServer({ worker: true });

const json = { 'content-type': 'application/json' };
const csv = { 'content-type': 'text/csv' };

let serial = 0;
/** A name, and a header that no other test has. */
const fresh = () => ({ name: `m${++serial}`, id: `Nr ${serial}`, header: `Nr ${serial};Stufe` });

const save = (name: string, mapping: object) =>
  server.json<Mapping & ErrorBody>(`/v1/mappings/${name}`, { method: 'PUT', json: mapping });
const show = (name: string) => server.json<Mapping & ErrorBody>(`/v1/mappings/${name}`);
const inspect = (text: string, query = '') =>
  server.json<Inspection & ErrorBody>(`/v1/imports/inspect${query}`, {
    method: 'POST',
    body: text,
    headers: csv,
  });
const load = async (
  query: string,
  options: { body?: string | FormData; headers?: Record<string, string> },
) => {
  const { status, body } = await server.json<{ job_id: string } & ErrorBody>(`/v1/imports${query}`, {
    method: 'POST',
    ...options,
  });
  expect([status, body.errors]).toEqual([200, undefined]);
  await t.ended(body.job_id);
  return (await server.json<{ counts: Record<string, number> }>(`/v1/background_jobs/${body.job_id}`)).body;
};
const userOf = async (id: string) =>
  (await server.json<{ metadata: Record<string, unknown> }>(`/v1/users/${id}`)).body;

describe('a mapping', () => {
  test('is saved under a name, shown, listed page by page, saved anew, and deleted', async () => {
    const { name, id } = fresh();
    const mapping = { map: { [id]: 'user_id' }, entity: 'users', delimiter: 'semicolon', header: 1 };
    const first = await save(name, mapping);
    expect(first.status).toBe(200);
    const stored = { ...mapping, name, format: null, column_names: null, last_used_at: null };
    expect(first.body).toEqual({ ...stored, saved_at: expect.any(String) });
    expect((await show(name)).body).toEqual(first.body);
    const other = await save(`${name}-b`, { map: {}, column_names: ['a', 'b'], format: 'csv' });
    expect(other.body).toMatchObject({ entity: 'auto', map: {}, column_names: ['a', 'b'], format: 'csv' });
    const items = await walkPages(async (cursor) => {
      const query = cursor === '' ? '' : `&cursor=${cursor}`;
      return (
        await server.json<Awaited<ReturnType<Parameters<typeof walkPages<Mapping>>[0]>>>(
          `/v1/mappings?limit=1${query}`,
        )
      ).body;
    });
    expect(items.map((item) => item.name)).toEqual(items.map((item) => item.name).toSorted());
    expect(items.filter((item) => item.name.startsWith(name))).toMatchObject([
      { name, mapped: 1, columns: null },
      { name: `${name}-b`, mapped: 0, columns: 2 },
    ]);
    const second = await save(name, { map: {} });
    expect(second.body).toMatchObject({ entity: 'auto', map: {} });
    expect(second.body).not.toHaveProperty('delimiter');
    const removed = await server.fetch(`/v1/mappings/${name}`, { method: 'DELETE' });
    expect([removed.status, await removed.text()]).toEqual([204, '']);
    expect(await refusalOf(server, `/v1/mappings/${name}`)).toEqual([404, ['not_found']]);
    expect(await refusalOf(server, `/v1/mappings/${name}`, { method: 'DELETE' })).toEqual([
      404,
      ['not_found'],
    ]);
  });

  test.each([
    ['nothing', {}, ['missing_field']],
    ['a map that is none', { map: { a: 1 } }, ['invalid_field']],
    ['what no mapping says', { map: {}, preset: 'mixpanel' }, ['invalid_field']],
    ['options that are wrong', { map: {}, encoding: 'x', entity: 'y' }, ['invalid_field', 'invalid_field']],
    ['a column that the header lacks', { map: { b: 'user_id' }, column_names: ['a'] }, ['invalid_field']],
  ])('with %s is refused', async (_, mapping, codes) => {
    const { status, body } = await save('wrong', mapping);
    expect([status, body.errors.map(({ error_code }) => error_code)]).toEqual([400, codes]);
    expect(await refusalOf(server, '/v1/mappings/wrong')).toEqual([404, ['not_found']]);
  });

  // proves: saved-mappings
  test('belongs to its environment', async () => {
    const { name, id, header } = fresh();
    await save(name, { map: { [id]: 'user_id' }, column_names: [id, 'Stufe'] });
    const other = await createEnvironment(t.system.db, `other${serial}`);
    const { key } = await createApiKey(t.system.db, other.environmentId, { label: 'test' });
    expect(await refusalOf(server, `/v1/mappings/${name}`, { key })).toEqual([404, ['not_found']]);
    const named = { method: 'POST', body: `${header}\n1;a\n`, headers: csv, key };
    expect(await refusalOf(server, `/v1/imports?mapping=${name}`, named)).toEqual([404, ['not_found']]);
    const { body } = await server.json<Inspection>('/v1/imports/inspect', named);
    expect(body).toMatchObject({ saved_mappings: [], mapping: null });
    const list = await server.json<{ data: unknown[] }>('/v1/mappings', { key });
    expect(list.body.data).toEqual([]);
  });
});

describe('a load', () => {
  // proves: saved-mappings
  test.each([
    ['the query', (text: string, name: string) => load(`?mapping=${name}`, { body: text, headers: csv })],
    ['a form', (text: string, name: string) => load('', { body: form(text, { before: { mapping: name } }) })],
    [
      'a JSON object with the id of an upload',
      async (text: string, name: string) => {
        const { body } = await inspect(text);
        const named = JSON.stringify({ upload_id: body.upload_id, mapping: name });
        return load('', { body: named, headers: json });
      },
    ],
  ])('that names a mapping in %s is read as it says, and the mapping says when', async (_, send) => {
    const { name, id, header } = fresh();
    await save(name, { map: { [id]: 'user_id', Stufe: 'plan' }, null: ['N/A'], delimiter: 'semicolon' });
    // With more commas than semicolons, and without a mapping, this would be a file of other columns.
    const done = await send(`${header}\nx${serial}a;1,2,3,4\nx${serial}b;N/A\n`, name);
    expect(done.counts).toMatchObject({ read: 2, inserted: 2 });
    expect((await userOf(`x${serial}a`)).metadata).toEqual({ plan: '1,2,3,4' });
    expect((await userOf(`x${serial}b`)).metadata).toEqual({});
    const { saved_at, last_used_at } = (await show(name)).body;
    expect(Date.parse(last_used_at ?? '')).toBeGreaterThanOrEqual(Date.parse(saved_at));
  });

  // proves: saved-mappings
  test('says what it says itself: that wins over the mapping', async () => {
    const { name, id, header } = fresh();
    await save(name, { map: { [id]: 'user_id' }, null: ['N/A'] });
    await load(`?mapping=${name}&null=nil`, { body: `${header}\ny${serial};N/A\n`, headers: csv });
    expect((await userOf(`y${serial}`)).metadata).toEqual({ Stufe: 'N/A' });
  });

  test('that names a mapping and a map, a preset or a mapping that is not there is refused', async () => {
    const { name, id, header } = fresh();
    await save(name, { map: { [id]: 'user_id' }, quote: "'" });
    const refused = (query: string) =>
      refusalOf(server, `/v1/imports?${query}`, { method: 'POST', body: `${header}\n1;a\n`, headers: csv });
    expect(await refused(`mapping=${name}&map=a%3Duser_id`)).toEqual([400, ['invalid_field']]);
    expect(await refused(`mapping=${name}&preset=mixpanel`)).toEqual([400, ['invalid_field']]);
    expect(await refused(`mapping=${name}&delimiter=%27`)).toEqual([400, ['invalid_field']]);
    expect(await refused('mapping=nowhere')).toEqual([404, ['not_found']]);
    expect(await refused('mapping=No')).toEqual([400, ['invalid_field']]);
    const bulk = { method: 'POST', body: '[{"user_id":"b"}]', headers: json };
    expect(await refusalOf(server, `/v1/users/bulk_identify?mapping=${name}`, bulk)).toEqual([
      400,
      ['invalid_field'],
    ]);
    expect((await show(name)).body.last_used_at).toBeNull();
  });
});

describe('an inspection', () => {
  // proves: saved-mappings
  test('names the mappings saved for the same columns, in any order, and shows what the one used last makes of the file', async () => {
    const { name, id, header } = fresh();
    const first = await inspect(`${header}\n1;a\n`);
    expect(first.body).toMatchObject({ column_names: [id, 'Stufe'], saved_mappings: [], mapping: null });
    const { column_names } = first.body;
    await save(`${name}-old`, { map: { [id]: 'user_id', Stufe: 'level' }, column_names, null: ['N/A'] });
    await save(`${name}-new`, { map: { [id]: 'company_id' }, column_names });
    await save(`${name}-other`, { map: { [id]: 'user_id' }, column_names: [id] });
    await load(`?mapping=${name}-old`, { body: `${header}\nz${serial};a\n`, headers: csv });
    const { body } = await inspect(`Stufe;${id}\nb;1\nN/A;2\n`);
    expect(body).toMatchObject({
      saved_mappings: [`${name}-old`, `${name}-new`],
      mapping: `${name}-old`,
      map: { [id]: 'user_id', Stufe: 'level' },
      problem: { error_code: 'unrecognised_columns' },
      rows: [
        { user_id: '1', metadata: { level: 'b' } },
        { user_id: '2', metadata: {} },
      ],
    });
    const reason = `the saved mapping ${name}-old says so`;
    expect(body.columns).toMatchObject([
      { name: 'Stufe', becomes: 'metadata.level', reason },
      { name: id, becomes: 'user_id', reason },
    ]);
  });

  test('shows what the mapping makes of the file that the caller names, and what a map does as it is given', async () => {
    const { name, id, header } = fresh();
    const column_names = [id, 'Stufe'];
    await save(name, { map: { [id]: 'user_id' }, column_names });
    const file = `${header}\n1;a\n`;
    const named = await inspect(file, `?mapping=${name}`);
    expect(named.body).toMatchObject({ mapping: name, saved_mappings: [name], problem: null });
    expect(named.body.columns[0]).toMatchObject({ reason: `the saved mapping ${name} says so` });
    const mapped = await inspect(file, `?map=${encodeURIComponent(`${id}=company_id`)}`);
    expect(mapped.body).toMatchObject({
      mapping: null,
      saved_mappings: [name],
      map: { [id]: 'company_id' },
      columns: [{ becomes: 'company_id', reason: 'map says so' }, {}],
    });
  });
});
