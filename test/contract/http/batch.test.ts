import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { MAX_BATCH_BYTES, MAX_HELD_BATCH_BYTES, MAX_RECORD_BYTES } from '../../../src/base/limits.ts';
import type { BatchAnswer } from '../../../src/ingest/write-batch.ts';
import { MAX_HELD_BATCH_BYTES_PER_ENVIRONMENT } from '../../../src/processes/app.ts';
import type { ErrorBody } from '../../support/servers/http.ts';
import { bodyOf, errorsOf, openRecordSite, type RecordSite } from '../../support/servers/records.ts';
import { waitFor } from '../../support/wait-for.ts';

const path = '/v1/batch';
const site = await openRecordSite();
afterAll(() => site.close());

let serial = 0;
const newId = () => `batch-${++serial}`;
type Options = Parameters<RecordSite['post']>[2];

const send = async (body: unknown, options?: Options) => {
  const answer = await site.post(path, body, options);
  return { status: answer.status, body: answer.body as unknown as BatchAnswer & ErrorBody };
};
const ndjson = { headers: { 'content-type': 'application/x-ndjson' } };
const take = async (items: readonly object[], options?: Options) =>
  expect(await send({ batch: items }, options)).toEqual({
    status: 200,
    body: { accepted: items.length, rejected: [] },
  });
const rejected = (index: number, error_code: string, message: RegExp) => ({
  index,
  error_code,
  message: expect.stringMatching(message) as string,
});
const track = (user_id: string, more: object = {}) => ({ type: 'track', user_id, event_name: 'x', ...more });
const identify = (user_id: string, more: object = {}) => ({ type: 'identify', user_id, ...more });
const company = (company_id: string, more: object = {}) => ({ type: 'company', company_id, ...more });

describe('a batch', () => {
  // proves: batch-alone
  test('users, companies and events of a batch are stored when the batch is answered', async () => {
    const id = newId();
    await take([
      identify(id, { plan: 'pro', metadata: { name: 'Ada' }, company: { company_id: id, size: 3 } }),
      track(id, { event_id: id, timestamp: '2026-02-03T04:05:06.5Z', metadata: { rows: 7 } }),
      company(id, { metadata: { industry: 'tools' } }),
    ]);
    expect(await site.user(id)).toMatchObject({ company_id: id, metadata: { name: 'Ada', plan: 'pro' } });
    expect(await site.company(id)).toMatchObject({ metadata: { size: 3, industry: 'tools' } });
    const [event, ...others] = await site.events(id);
    expect([event, others]).toMatchObject([
      {
        event_id: id,
        event_type: 'track',
        event_name: 'x',
        company_id: id,
        source: 'backend-http',
        inserted_at: '2026-02-03T04:05:06.500000Z',
        metadata: { rows: 7 },
      },
      [],
    ]);
  });

  test.each<[string, (items: readonly object[]) => unknown, Record<string, string>]>([
    ['with other keys beside it', (items) => ({ sent_at: 1, context: { a: [] }, batch: items, x: null }), {}],
    ['as an array', (items) => items, {}],
    [
      'with blanks and a byte order mark',
      (items) => `\ufeff \n${JSON.stringify({ batch: items }, null, 2)}\n`,
      {},
    ],
    ['as gzip', (items) => new Uint8Array(gzipSync(JSON.stringify(items))), { 'content-encoding': 'gzip' }],
    ['as NDJSON', (items) => items.map((item) => `${JSON.stringify(item)}\n`).join(''), ndjson.headers],
    [
      'as NDJSON with CRLF, blank lines and no last line end',
      (items) => `\r\n${items.map((item) => JSON.stringify(item)).join('\r\n \r\n')}`,
      { 'content-type': 'Application/JSONL; charset=utf-8' },
    ],
    [
      'as NDJSON and gzip',
      (items) => new Uint8Array(gzipSync(items.map((item) => JSON.stringify(item)).join('\n'))),
      { ...ndjson.headers, 'content-encoding': 'gzip' },
    ],
  ])('a batch %s is accepted', async (_, write, headers) => {
    const id = newId();
    const items = [identify(id, { metadata: { ü: '✓' } }), track(id), track(id, { n: [1, { a: null }] })];
    expect(await send(write(items), { headers })).toEqual({
      status: 200,
      body: { accepted: 3, rejected: [] },
    });
    expect(await site.user(id)).toMatchObject({ metadata: { ü: '✓' } });
    expect((await site.events(id)).map(({ metadata }) => metadata)).toEqual([{}, { n: [1, { a: null }] }]);
  });
});

describe('a bad item of a batch', () => {
  // proves: batch-alone
  test('each bad item of a batch is refused with its index, code and message, and the others are stored', async () => {
    const id = newId();
    const { status, body } = await send({
      batch: [
        track(id, { n: 0 }),
        { type: 'track', user_id: id },
        { type: 'page', user_id: id },
        { user_id: id },
        identify(''),
        'nonsense',
        null,
        [track(id)],
        track(id, { timestamp: 'yesterday' }),
        company(id, { metadata: 'x', prototype: 1 }),
        track(id, { event_id: 'a', insert_id: 'b' }),
        track(id, { n: 11 }),
      ],
    });
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        accepted: 2,
        rejected: [
          rejected(1, 'missing_field', /event_name/),
          rejected(2, 'invalid_field', /type must be one of identify, track, company/),
          rejected(3, 'missing_field', /type is missing/),
          rejected(4, 'invalid_field', /user_id is empty/),
          rejected(5, 'invalid_field', /The item must be a JSON object/),
          rejected(6, 'invalid_field', /The item must be a JSON object/),
          rejected(7, 'invalid_field', /The item must be a JSON object/),
          rejected(8, 'invalid_date', /timestamp/),
          rejected(9, 'invalid_field', /metadata must be an object.* \(and 1 more problem\)$/),
          rejected(10, 'invalid_field', /event_id and insert_id/),
        ],
      },
    });
    expect((await site.events(id)).map(({ metadata }) => metadata)).toEqual([{ n: 0 }, { n: 11 }]);
    expect([await site.user(id), await site.company(id)]).toEqual([null, null]);
  });

  test('a line of NDJSON that is not JSON, not UTF-8 or too long is refused alone', async () => {
    const id = newId();
    const lines = [
      JSON.stringify(track(id)),
      '{"type":"track",',
      Buffer.concat([Buffer.from('{"type":"track","user_id":"'), Buffer.from([0xff]), Buffer.from('"}')]),
      JSON.stringify(track(id, { a: 'x'.repeat(MAX_RECORD_BYTES) })),
      JSON.stringify(track(id)),
    ].map((line) => Buffer.concat([Buffer.from(line), Buffer.from('\n')]));
    const { body } = await send(new Uint8Array(Buffer.concat(lines)), ndjson);
    expect(body).toEqual({
      accepted: 2,
      rejected: [
        rejected(1, 'invalid_json', /The item is not JSON/),
        rejected(2, 'invalid_json', /UTF-8/),
        rejected(3, 'payload_too_large', /1048576/),
      ],
    });
    expect(await site.events(id)).toHaveLength(2);
  });

  // proves: batch-alone
  test('an item of a batch that the database refuses is refused alone', async () => {
    const id = newId();
    const number = `0.${'1'.repeat(17_000)}`;
    const bad = (at: number) => [3, 4, 9, 16].includes(at);
    const items = Array.from({ length: 17 }, (_, at) =>
      at % 3 === 0
        ? `{"type":"identify","user_id":"${id}-${at}","company":{"company_id":"${id}","n":${bad(at) ? number : at}}}`
        : `{"type":"track","user_id":"${id}","event_name":"x","at":${at},"n":${bad(at) ? number : at}}`,
    );
    const { status, body } = await send(`[${items.join(',')}]`);
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        accepted: 13,
        rejected: [3, 4, 9, 16].map((at) => rejected(at, 'invalid_metadata_value', /database/)),
      },
    });
    expect((await site.events(id)).map(({ metadata }) => metadata['at'])).toEqual([
      1, 2, 5, 7, 8, 10, 11, 13, 14,
    ]);
    expect((await site.company(id))?.metadata).toEqual({ n: 15 });
    expect([await site.user(`${id}-3`), await site.user(`${id}-9`)]).toEqual([null, null]);
  });
});

describe('a body that is not a batch', () => {
  const refuse = async (body: unknown, status: number, phrase: string, code: string, options?: Options) => {
    const before = await site.countRows();
    expect(await send(body, options)).toEqual({
      status,
      body: errorsOf(phrase, [code, expect.any(String) as string]),
    });
    expect(await site.countRows()).toEqual(before);
  };

  test.each([
    ['nothing', '', 'invalid_json'],
    ['cut', `[${JSON.stringify(track('u'))}`, 'invalid_json'],
    ['broken behind a good item', `[${JSON.stringify(track('u'))},{]`, 'invalid_json'],
    ['NDJSON sent as JSON', `${JSON.stringify(track('u'))}\n${JSON.stringify(track('u'))}`, 'missing_field'],
    ['one record', JSON.stringify(track('u')), 'missing_field'],
    ['a batch that is not an array', '{"batch":{}}', 'invalid_field'],
    ['two batches', '{"batch":[],"batch":[]}', 'invalid_field'],
  ])('a body that is not a batch (%s) is 400, and nothing is stored', (_, body, code) =>
    refuse(body, 400, 'Bad Request', code),
  );

  test('a batch one byte over the limit is 413, packed or not, and a batch of the limit is stored', async () => {
    const id = newId();
    const items = Array.from({ length: 11 }, () =>
      track(id, { a: 'x'.repeat(60_000), b: ['y'.repeat(60_000)] }),
    );
    const start = JSON.stringify(items).slice(0, -1);
    const whole = `${start}${' '.repeat(MAX_BATCH_BYTES - start.length - 1)}]`;
    const gzip = { headers: { 'content-encoding': 'gzip' } };
    for (const [text, options] of [
      [`${whole} `, undefined],
      [new Uint8Array(gzipSync(`${whole} `)), gzip],
    ] as const)
      await refuse(text, 413, 'Payload Too Large', 'payload_too_large', options);
    expect((await send(new Uint8Array(gzipSync(whole)), gzip)).body).toEqual({ accepted: 11, rejected: [] });
    expect(await site.events(id)).toHaveLength(11);
  });
});

describe('the Idempotency-Key of a batch', () => {
  const keyed = (key: string, more: Record<string, string> = {}) => ({
    headers: { 'idempotency-key': key, ...more },
  });

  // proves: batch-idempotent
  test('a batch repeated with its Idempotency-Key writes nothing and gives the first answer with its refusals, and another body is 409', async () => {
    const id = newId();
    const number = `0.${'1'.repeat(17_000)}`;
    const body = `[${JSON.stringify(track(id))},{"type":"none"},{"type":"track","user_id":"${id}","event_name":"x","n":${number}}]`;
    const first = await send(body, keyed(id));
    expect(first).toEqual({
      status: 200,
      body: {
        accepted: 1,
        rejected: [rejected(1, 'invalid_field', /type/), rejected(2, 'invalid_metadata_value', /database/)],
      },
    });
    expect(await send(body, keyed(id))).toEqual(first);
    expect(await send([track(id)], keyed(id))).toEqual({
      status: 409,
      body: errorsOf('Conflict', ['idempotency_conflict', 'Idempotency-Key']),
    });
    expect(await site.events(id)).toHaveLength(1);
  });

  // proves: batch-idempotent
  test('ten batches sent at once with one Idempotency-Key are written once, with and without profiles', async () => {
    for (const more of [[], [identify('keyed', { a: '1' })]]) {
      const id = newId();
      await Promise.all(Array.from({ length: 10 }, () => take([track(id), ...more], keyed(id))));
      expect(await site.events(id)).toHaveLength(1);
    }
  });
});

test('while the database hangs, batches beyond the bounds of one environment and of all are refused at once, and the others are stored later', async () => {
  const id = newId();
  const tenants = [site.t, await site.t.addEnvironment(`${id}-b`), await site.t.addEnvironment(`${id}-c`)];
  await take([track(id)]);
  const lock = await site.hold('lock table sluice.events in access exclusive mode');
  const bytes = MAX_BATCH_BYTES - 1_000;
  const items = [track(id, { one: 1 })];
  const text = bodyOf({ batch: items, padding: 'x'.repeat(bytes - JSON.stringify(items).length) });
  const room = Math.floor(MAX_HELD_BATCH_BYTES_PER_ENVIRONMENT / bytes);
  const statuses: number[] = [];
  const sent: Promise<unknown>[] = [];
  const refused = [429, 429, 503];
  for (const [nth, { key }] of tenants.entries()) {
    const count = nth < 2 ? room + 1 : 1;
    for (let n = 0; n < count; n++)
      sent.push(send(text, { key }).then(({ status }) => statuses.push(status)));
    await waitFor('one for which there is no room', () => statuses.length > nth);
  }
  expect(statuses).toEqual(refused);
  await lock.release();
  await Promise.all(sent);
  expect(statuses.slice(refused.length)).toEqual(Array.from({ length: 2 * room }, () => 200));
  expect(await site.events(id)).toHaveLength(1 + room);
  // Once the first batches are stored, the memory for batches is free again, so new batches are
  // accepted.
  for (const { key } of tenants) await take([track(id)], { key });
});

describe('a batch that is announced and never sent', () => {
  /** Returns the sizes of request bodies that together fill the memory for batches. */
  const fill = (most: number) =>
    Array.from({ length: Math.ceil(most / MAX_BATCH_BYTES) }, (_, nth) =>
      Math.min(MAX_BATCH_BYTES, most - nth * MAX_BATCH_BYTES),
    );
  const announce = async (key: string, bytes: number) => {
    const connection = await site.server.connect();
    const head = [`POST ${path} HTTP/1.1`, 'host: x', `authorization: Token ${key}`];
    connection.head(...head, 'content-type: application/json', `content-length: ${bytes}`);
    return connection;
  };

  // proves: leaving-client
  test('announced batches that are never sent keep no other environment out', async () => {
    const other = await site.t.addEnvironment(newId());
    const silent = await Promise.all(fill(MAX_HELD_BATCH_BYTES).map((bytes) => announce(other.key, bytes)));
    const answered = () => silent.filter(({ received }) => received !== '').length;
    await waitFor('those for which there is no room', () => answered() === 3);
    await take([track(newId())]);
    for (const each of silent) each.reset();
    await waitFor('room', async () => (await send([track(newId())], { key: other.key })).status === 200);
  });
});
