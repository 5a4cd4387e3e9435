import { describe, expect, test } from 'vitest';
import { keepCsv } from '../../support/files/uploads.ts';
import { textRow, workbookFile } from '../../support/files/workbook-file.ts';
import { type FileBody, form, type LoadRequest, openServer, refusalOf } from '../../support/servers/http.ts';

const { t, server } = await openServer({ worker: true });

const csv = { 'content-type': 'text/csv' };
const types = ['Seats=number', 'Since=day_first', 'Active=boolean'];
const query = types.map((type) => `types=${encodeURIComponent(type)}`).join('&');

let serial = 0;
/** Returns a file with one user that no other test uses. */
const fileOf = (id: string) => `user_id,Seats,Since,Active,Note\n${id},"1,200",1.2.2026,yes,7\n`;
const typed = { Seats: 1200, Since: '2026-02-01', Active: true, Note: '7' };

const load = ({ body = null, ...sent }: LoadRequest & { readonly body?: FileBody | null }, query = '') =>
  server.load(body, { query, ...sent });
const metadataOf = async (id: string) =>
  (await server.json<{ metadata: Record<string, unknown> }>(`/v1/users/${id}`)).body.metadata;

describe('the types of columns', () => {
  // proves: typed-columns
  test.each([
    ['the query', (text: string) => load({ body: text, headers: csv }, `?${query}`)],
    [
      'a form',
      (text: string) =>
        load(
          { body: form(text, { before: { types: 'Seats=number' } }) },
          '?types=Since%3Dday_first&types=Active%3Dboolean',
        ),
    ],
    [
      'the body that names an upload',
      async (text: string) => {
        const upload_id = await keepCsv(t.system, t.environment.environmentId, text);
        return load({ json: { upload_id, types } });
      },
    ],
    [
      'the query of a workbook',
      (text: string) => {
        const rows = text
          .trim()
          .split('\n')
          .map((line, at) => textRow(at + 1, ...line.replace('"1,200"', '1200').split(',')));
        const body = new Uint8Array(workbookFile({ sheets: [{ name: 'S', rows: rows.join('') }] }));
        const type = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';
        return load({ body, headers: { 'content-type': type } }, `?${query}`);
      },
    ],
  ])('types of columns may be set in %s, and values are stored with their type', async (_, send) => {
    const id = `typed${++serial}`;
    expect((await send(fileOf(id))).counts).toMatchObject({ read: 1, inserted: 1 });
    expect(await metadataOf(id)).toEqual(typed);
  });

  // proves: typed-columns
  test('types of columns apply to events', async () => {
    const id = `typed${++serial}`;
    const text = `event_type,user_id,event_name,inserted_at,Seats\ntrack,${id},Bought,2026-01-02,"1,200"\nidentify_user,${id},,,3\n`;
    expect((await load({ body: text, headers: csv }, '?types=Seats%3Dnumber')).counts.rejected).toBe(0);
    expect(await metadataOf(id)).toEqual({ Seats: 3 });
    const { metadata } = await t.system.db
      .selectFrom('events')
      .select('metadata')
      .where('user_id', '=', id)
      .executeTakeFirstOrThrow();
    expect(metadata).toEqual({ Seats: 1200 });
  });

  // proves: typed-columns
  test('values of another type than their column are refused', async () => {
    const [good, number, date] = [++serial, ++serial, ++serial].map((n) => `typed${n}`);
    const text = `user_id,Seats,Since\n${good},1,1.2.2026\n${number},few,2.2.2026\n${date},3,31.31.2026\n`;
    const job = await load({ body: text, headers: csv }, '?types=Seats%3Dnumber&types=Since%3Dday_first');
    expect(job.rejects.by_code).toEqual({ invalid_type: 1, invalid_date: 1 });
  });

  // proves: typed-columns
  test('values change when a file is loaded again with other types', async () => {
    const id = `typed${++serial}`;
    const again = (typesQuery: string) =>
      load({ body: `user_id,Day\n${id},1/2/2026\n`, headers: csv }, typesQuery);
    await again('?types=Day%3Dday_first');
    expect((await again('?types=Day%3Dday_first')).counts).toMatchObject({ unchanged: 1 });
    expect(await metadataOf(id)).toEqual({ Day: '2026-02-01' });
    expect((await again('?types=Day%3Dmonth_first')).counts).toMatchObject({ updated: 1 });
    expect(await metadataOf(id)).toEqual({ Day: '2026-01-02' });
    expect((await again('')).counts).toMatchObject({ updated: 1 });
    expect(await metadataOf(id)).toEqual({ Day: '1/2/2026' });
  });

  test.each([
    ['a column that is not there', 'types=Nothing%3Dnumber', 'user_id,a\n1,1\n', csv],
    ['the id', 'types=user_id%3Dnumber', 'user_id,a\n1,1\n', csv],
    ['two types of one column', 'types=a%3Dnumber&types=a%3Dboolean', 'user_id,a\n1,1\n', csv],
    ['a type that is none', 'types=a%3Dinteger', 'user_id,a\n1,1\n', csv],
    ['JSON', 'types=a%3Dnumber', '{"user_id":"1","a":"1"}\n', { 'content-type': 'application/x-ndjson' }],
  ])('types of columns are refused for %s', async (_, typesQuery, body, headers) => {
    expect(await refusalOf(server, `/v1/imports?${typesQuery}`, { method: 'POST', body, headers })).toEqual([
      400,
      ['invalid_field'],
    ]);
  });
});
