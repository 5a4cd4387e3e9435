import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { JobRecord as Job } from '../../../src/http/job.ts';
import { type ErrorBody, form, openServer } from '../../support/servers/http.ts';

type Body = string | Uint8Array<ArrayBuffer> | FormData;

const { t, server } = await openServer({ worker: true });

const kinds = [
  { entity: 'users', id: 'user_id', type: 'bulk_identify_users' },
  { entity: 'companies', id: 'company_id', type: 'bulk_identify_companies' },
] as const;

const json = { 'content-type': 'application/json' };
const post = (path: string, body: Body, headers: Record<string, string> = {}) =>
  server.json<Job & ErrorBody>(path, { method: 'POST', body, headers });

describe.each(kinds)('POST /v1/$entity/bulk_identify', ({ entity, id, type }) => {
  const path = `/v1/${entity}/bulk_identify`;
  const items = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ [id]: `${type}-${i}`, metadata: { name: 'x', seats: 3 } }));
  const body = JSON.stringify({ [entity]: items(3) });

  test(`POST ${path} is answered 202 with the job record, whose numbers are integers`, async () => {
    const answer = await post(path, body, json);
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({
      job_id: expect.any(String),
      type,
      status: 'queued',
      filename: `${type}.json`,
      file_size: body.length,
      total_rows: 3,
      start_time: expect.stringMatching(/\.\d{3}Z$/),
      end_time: null,
      links: `${server.address}/v1/background_jobs/${answer.body.job_id}`,
    });
    const load = await t.ended(answer.body.job_id);
    expect(load).toMatchObject({ status: 'completed', entity, tally: { read: 3, rejected: 0 } });
  });

  test.each([
    ['as a bare array', JSON.stringify(items(3)), json],
    ['with other keys around it', JSON.stringify({ version: 1, [entity]: items(3), more: {} }), json],
    [
      'as a form with NDJSON',
      form(
        items(3)
          .map((item) => `${JSON.stringify(item)}\n`)
          .join(''),
        { filename: 'a.ndjson' },
      ),
      {},
    ],
    ['as a form with CSV', form(`${id},name\na,x\nb,y\nc,z\n`, { filename: 'a.csv' }), {}],
    ['as a form with gzip', form(gzipSync(`${id},name\na,x\nb,y\nc,z\n`), { filename: 'a.csv.gz' }), {}],
  ] as [string, Body, Record<string, string>][])(
    `POST ${path} accepts a body %s`,
    async (_, content, headers) => {
      const answer = await post(path, content, headers);
      expect([answer.status, answer.body.total_rows]).toEqual([202, 3]);
      expect((await t.ended(answer.body.job_id)).tally).toMatchObject({ read: 3, rejected: 0 });
    },
  );

  test(`POST ${path} takes the options of an import`, async () => {
    const answer = await post(`${path}?dry_run=true&entity=${entity}`, body, json);
    expect(answer.status).toBe(202);
    expect(await t.ended(answer.body.job_id)).toMatchObject({ dryRun: true });
    const other = await post(`${path}?entity=${entity === 'users' ? 'companies' : 'users'}`, body, json);
    expect([other.status, other.body.errors[0]?.details]).toEqual([400, 'entity']);
  });

  test.each([
    ['{"other":[]}', 'missing_field'],
    [`{"${entity}":{}}`, 'invalid_field'],
    [`{"${entity}":[]}`, 'empty_file'],
    [`{"${entity}":[1]}`, 'invalid_field'],
    ['[[{}], "{", null]', 'invalid_field'],
    ['', 'empty_file'],
    [`{"${entity}":[{"a":1}`, 'invalid_json'],
    [`{"${entity}":[{"a":1}]} x`, 'invalid_json'],
    ['nonsense', 'invalid_json'],
    [`{"${id}":"a"}\n{"${id}":"b"}\n`, 'missing_field'],
  ])(`POST ${path} refuses the body %j with 400 %s and keeps no file`, async (content, code) => {
    const before = await t.storedFiles();
    const answer = await post(path, content, json);
    expect([answer.status, answer.body.errors[0]?.error_code]).toEqual([400, code]);
    expect(await t.storedFiles()).toEqual(before);
  });

  test(`bad items of POST ${path} are rejects, not a refusal`, async () => {
    const content = JSON.stringify({ [entity]: [{ [id]: 'ok' }, 7, { name: 'x' }, { [id]: {} }] });
    const answer = await post(path, content, json);
    expect(answer.body.total_rows).toBe(4);
    expect((await t.ended(answer.body.job_id)).tally).toMatchObject({ read: 4, rejected: 3 });
  });
});

// One run is enough, because the test does not depend on the queue.
test.skipIf(process.env['SLUICE_TEST_QUEUE'] === 'redis')(
  'a body of 60 MB is received in less than 150 MB of memory',
  async () => {
    const item = JSON.stringify({ user_id: 'u', metadata: { text: 'x'.repeat(1_000) } });
    const count = 60_000;
    let sent = 0;
    const stream = new ReadableStream({
      pull(controller) {
        if (sent === 0) controller.enqueue(Buffer.from(`{"users":[${item}`));
        else if (sent < count) controller.enqueue(Buffer.from(`,${item}`.repeat(100)));
        else {
          controller.enqueue(Buffer.from(']}'));
          controller.close();
        }
        sent += sent === 0 ? 1 : 100;
      },
    });
    const before = process.memoryUsage().rss;
    const answer = await server.json<Job>('/v1/users/bulk_identify?dry_run=true', {
      method: 'POST',
      body: stream,
      duplex: 'half',
      headers: json,
    });
    expect([answer.status, answer.body.total_rows]).toEqual([202, count + 1]);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 2 ** 20);
  },
);
