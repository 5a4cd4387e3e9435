import { describe, expect, test } from 'vitest';
import { createEnvironment } from '../../../src/access/environment-store.ts';
import { createApiKey } from '../../../src/access/key-store.ts';
import { keepCsv } from '../../support/files/uploads.ts';
import {
  type ErrorBody,
  type FileBody,
  form,
  type LoadRequest,
  openServer,
  refusalOf,
} from '../../support/servers/http.ts';

const { t, server } = await openServer({ worker: true });

const csv = { 'content-type': 'text/csv' };
const header = 'Nr;Stufe';

const load = (query: string, { body = null, ...sent }: LoadRequest & { readonly body?: FileBody | null }) =>
  server.load(body, { query, ...sent });

const userOf = async (id: string) =>
  (await server.json<{ metadata: Record<string, unknown> }>(`/v1/users/${id}`)).body.metadata;

/**
 * The file has more commas than semicolons, so without these options a later load would detect the
 * wrong columns.
 */
const options = `?${new URLSearchParams({
  map: '{"Nr":"user_id","Stufe":"plan"}',
  ...{ null: 'N/A', delimiter: 'semicolon', max_errors: '1' },
})}`;
const first = await load(options, { body: `${header}\na0;x\n`, headers: csv });
const { job_id: jobId } = first;

describe('a load with options_of', () => {
  // proves: options-of
  test.each([
    ['the query', 'q', (text: string) => load(`?options_of=${jobId}`, { body: text, headers: csv })],
    ['a form', 'f', (text: string) => load('', { body: form(text, { before: { options_of: jobId } }) })],
    [
      'a JSON object with the id of an upload',
      'j',
      async (text: string) => {
        const upload_id = await keepCsv(t.system, t.environment.environmentId, text);
        return load('', { json: { upload_id, options_of: jobId } });
      },
    ],
  ])('options_of in %s takes map and dialect of the earlier load', async (_, prefix, send) => {
    const { counts } = await send(`${header}\n${prefix}1;1,2,3,4\n${prefix}2;N/A\n`);
    expect(counts).toMatchObject({ read: 2, inserted: 2 });
    expect(await userOf(`${prefix}1`)).toEqual({ plan: '1,2,3,4' });
    expect(await userOf(`${prefix}2`)).toEqual({});
  });

  // proves: options-of
  test('options_of takes the limits of the earlier load', async () => {
    const body = `${header}\n;x\n;y\nl1;z\n`;
    const { status, failure } = await load(`?options_of=${jobId}`, { body, headers: csv });
    expect([status, failure?.error_code]).toEqual(['failed', 'too_many_rejects']);
  });

  // proves: options-of
  test('options of the request win over options_of', async () => {
    const query = `?options_of=${jobId}&null=nil&max_errors=2&map=Nr%3Duser_id`;
    const { counts } = await load(query, { body: `${header}\n;x\n;y\nw1;N/A\n`, headers: csv });
    expect(counts).toMatchObject({ inserted: 1, rejected: 2 });
    expect(await userOf('w1')).toEqual({ Stufe: 'N/A' });
  });

  const refuse = (query: string, text = `${header}\n1;a\n`, key?: string) =>
    server.json<ErrorBody>(`/v1/imports?${query}`, {
      method: 'POST',
      body: text,
      headers: csv,
      ...(key !== undefined && { key }),
    });

  // proves: options-of
  test('options_of is refused with the name of a column that the new file lacks', async () => {
    const { status, body } = await refuse(`options_of=${jobId}`, 'Nr;Level\n1;a\n');
    expect([status, body.errors[0]?.error_code]).toEqual([400, 'invalid_field']);
    expect(body.errors[0]?.message).toContain('Stufe');
  });

  test('options_of is refused if an option of the request contradicts the earlier load', async () => {
    const { status, body } = await refuse(`options_of=${jobId}&quote=%3B`);
    expect([status, body.errors[0]?.details]).toEqual([400, `options_of: ${jobId}`]);
  });

  // proves: options-of
  test('options_of is refused if no load of its environment has this id', async () => {
    const other = await createEnvironment(t.system.db, 'other');
    const { key } = await createApiKey(t.system.db, other.environmentId, { label: 'test' });
    for (const [query, caller] of [
      ['options_of=01890000-0000-7000-8000-000000000000', undefined],
      [`options_of=${jobId}`, key],
    ] as const) {
      const { status, body } = await refuse(query, undefined, caller);
      expect([status, body.errors[0]?.error_code]).toEqual([404, 'not_found']);
    }
    const sent = { method: 'POST', body: 'x', headers: csv };
    expect(await refusalOf(server, '/v1/imports?options_of=No', sent)).toEqual([400, ['invalid_field']]);
  });
});
