import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { MAX_RECORD_BYTES, MAX_VALUE_BYTES } from '../../../src/base/limits.ts';
import type { ErrorBody } from '../../support/servers/http.ts';
import { bodyOf, errorsOf, openRecordSite, type RecordSite } from '../../support/servers/records.ts';

const site = await openRecordSite();
afterAll(() => site.close());

type Properties = Readonly<Record<string, unknown>>;

interface Kind {
  readonly path: string;
  readonly table: 'users' | 'companies' | 'events';
  /** Required fields. Each one is an id or a name. */
  readonly required: readonly string[];
  record(id: string, properties?: Properties): Properties;
  /** Returns the metadata of all rows with the id. */
  stored(id: string, environmentId?: number): Promise<Properties[]>;
}

const metadataOf = (row: { readonly metadata: Properties } | null) => (row === null ? [] : [row.metadata]);

const kinds: readonly Kind[] = [
  {
    path: '/v1/identify',
    table: 'users',
    required: ['user_id'],
    record: (user_id, metadata = {}) => ({ user_id, metadata }),
    stored: async (id, environmentId) => metadataOf(await site.user(id, environmentId)),
  },
  {
    path: '/v1/track',
    table: 'events',
    required: ['user_id', 'event_name'],
    record: (user_id, metadata = {}) => ({ user_id, event_name: 'something', metadata }),
    stored: async (id, environmentId) =>
      (await site.events(id, environmentId)).map(({ metadata }) => metadata),
  },
  {
    path: '/v1/companies/identify',
    table: 'companies',
    required: ['company_id'],
    record: (company_id, metadata = {}) => ({ company_id, metadata }),
    stored: async (id, environmentId) => metadataOf(await site.company(id, environmentId)),
  },
];

/** Part of an id that no other test uses. */
let serial = 0;
const newId = () => `record-${++serial}`;

describe.each(kinds)('POST $path', ({ path, table, required, record, stored }) => {
  /** Returns the status, the error code, and the metadata stored under the id. */
  const outcome = async (id: string, body: unknown, options?: Parameters<RecordSite['post']>[2]) => {
    const answer = await site.post(path, body, options);
    return [answer.status, answer.body?.errors[0]?.error_code ?? null, await stored(id)];
  };
  const accepted = (properties: Properties = {}) => [202, null, [properties]];

  describe('an accepted record', () => {
    test('an accepted record is answered 202 without a body, with the request id', async () => {
      const id = newId();
      const response = await site.server.fetch(path, {
        json: record(id, { a: 'x' }),
        headers: { 'x-request-id': `trace/${id}` },
      });
      expect([response.status, await response.text()]).toEqual([202, '']);
      const { headers } = response;
      expect([headers.get('content-length'), headers.get('content-type')]).toEqual(['0', null]);
      expect(headers.get('x-request-id')).toBe(`trace/${id}`);
      expect(await stored(id)).toEqual([{ a: 'x' }]);
    });

    // proves: acknowledged
    test('a record is answered after its commit, and not before', async () => {
      const id = newId();
      await site.accept(path, record(newId()));
      const lock = await site.hold(`lock table sluice.${table} in share row exclusive mode`);
      let answered = false;
      const answer = site.post(path, record(id)).finally(() => {
        answered = true;
      });
      await site.blocked();
      expect([answered, await stored(id)]).toEqual([false, []]);
      await lock.release();
      expect((await answer).status).toBe(202);
      expect(await stored(id)).toEqual([{}]);
    });

    test('a record may have values of 64 KiB, and be 1 MiB large', async () => {
      const id = newId();
      const metadata = { ascii: 'x'.repeat(MAX_VALUE_BYTES), wide: 'é'.repeat(MAX_VALUE_BYTES / 2) };
      expect(await outcome(id, record(id, metadata))).toEqual(accepted(metadata));
      const whole = newId();
      const body = ofBytes(record(whole), MAX_RECORD_BYTES);
      expect([
        (await site.post(path, body)).status,
        Object.keys((await stored(whole))[0] ?? {}).length,
      ]).toEqual([202, 17]);
      const packed = newId();
      const options = { headers: { 'content-encoding': 'gzip' } };
      const zipped = new Uint8Array(gzipSync(ofBytes(record(packed), MAX_RECORD_BYTES)));
      expect([(await site.post(path, zipped, options)).status, (await stored(packed)).length]).toEqual([
        202, 1,
      ]);
    });
  });

  describe('a refused body', () => {
    const expectNothing = async (body: unknown, status: number, error: ErrorBody, headers = {}) => {
      const before = await site.countRows();
      const answer = await site.post(path, body, { headers });
      expect({ status: answer.status, body: answer.body }).toEqual({ status, body: error });
      expect(answer.headers.get('x-request-id')).toMatch(/\S/);
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(await site.countRows()).toEqual(before);
    };
    const bad = (...problems: Parameters<typeof errorsOf>[1][]) => errorsOf('Bad Request', ...problems);
    const anyDetails = expect.any(String) as string;

    test.each<[string, string | Uint8Array<ArrayBuffer>]>([
      ['a word', 'nonsense'],
      ['a trailing comma', '{"user_id":"u",}'],
      ['NaN', '{"user_id":"u","event_name":"x","company_id":"c","n":NaN}'],
      ['a raw control character', '{"user_id":"u\n","event_name":"x","company_id":"c"}'],
      ['UTF-16', new Uint8Array(Buffer.from('{"user_id":"u"}', 'utf16le'))],
      ['Latin-1', new Uint8Array(Buffer.from('{"user_id":"ü","event_name":"x","company_id":"c"}', 'latin1'))],
      [
        'a surrogate as bytes',
        new Uint8Array([...Buffer.from('{"user_id":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')]),
      ],
      ['nothing', ''],
    ])('a body of %s is 400 invalid_json and not stored', async (_, body) => {
      await expectNothing(body, 400, bad(['invalid_json', anyDetails]));
    });

    test.each([
      ['[{"user_id":"u","event_name":"x","company_id":"c"}]', 'array'],
      ['"user_id"', 'string'],
      ['null', 'null'],
      ['1e999', 'number'],
    ])('a body of %s is not an object and refused', async (body, kind) => {
      await expectNothing(body, 400, bad(['invalid_field', `got ${kind}`]));
    });

    test.each(required)('a record without a valid %s is refused', async (field) => {
      const valid = record('u');
      const { [field]: _, ...without } = valid;
      await expectNothing(without, 400, bad(['missing_field', field]));
      await expectNothing({ ...valid, [field]: null }, 400, bad(['missing_field', field]));
      // An id may be a number, but a name must be a string.
      const isName = field === 'event_name';
      const wanted = isName ? 'a string' : 'a string or a whole number';
      for (const [value, kind] of [
        ...(isName ? ([7, 1e300] as const).map((number) => [number, 'number'] as const) : []),
        ...(isName ? [] : ([[12.5, '12.5']] as const)),
        [true, 'boolean'],
        [['u'], 'array'],
        [{ id: 'u' }, 'object'],
      ] as const) {
        const details = `${field}: expected ${wanted}, got ${kind}`;
        await expectNothing({ ...valid, [field]: value }, 400, bad(['invalid_field', details]));
      }
      const wrong = [
        '',
        'x'.repeat(257),
        `${'é'.repeat(128)}x`,
        `${'🚀'.repeat(64)}x`,
        'a\0b',
        '\ud83d',
        '\ude80\ud83d',
      ];
      for (const value of wrong) {
        await expectNothing({ ...valid, [field]: value }, 400, bad(['invalid_field', field]));
      }
    });

    test('an empty object is refused with every required field named', async () => {
      await expectNothing({}, 400, bad(...required.map((field) => ['missing_field', field] as const)));
    });

    test('a record with properties that cannot be stored is refused with each of them named', async () => {
      const lone = '\ud800';
      const fields = JSON.stringify(record('u')).slice(1, -1).replace(',"metadata":{}', '');
      const text = `{${fields},"__proto__":"x","prototype":"x","metadata":{
        "__proto__":"x","constructor":"x","${'n'.repeat(256)}":"x","${'🚀'.repeat(128)}":"x",
        "nul\\u0000":"x","half\\ud800":"x","a":"\\u0000","b":"x\\udfff","c":"${'é'.repeat(32_769)}","ok":"fine"}}`;
      await expectNothing(
        text,
        400,
        bad(
          ['invalid_metadata_value', '__proto__'],
          ['invalid_metadata_value', 'prototype'],
          ['invalid_metadata_value', 'metadata.__proto__'],
          ['invalid_metadata_value', 'metadata.constructor'],
          ['invalid_metadata_value', `metadata.${'n'.repeat(40)}…`],
          ['invalid_metadata_value', `metadata.${'🚀'.repeat(20)}…`],
          ['invalid_metadata_value', 'metadata.nul␀'],
          ['invalid_metadata_value', `metadata.half${lone.toWellFormed()}`],
          ['invalid_metadata_value', 'metadata.a'],
          ['invalid_metadata_value', 'metadata.b'],
          ['invalid_metadata_value', 'metadata.c'],
        ),
      );
    });

    test('a record one byte over 1 MiB is 413, plain or packed', async () => {
      const error = errorsOf('Payload Too Large', ['payload_too_large', 'the request body']);
      const long = ofBytes(record(newId()), MAX_RECORD_BYTES + 1);
      const gzip = { 'content-encoding': 'gzip' };
      await expectNothing(long, 413, error);
      await expectNothing('x'.repeat(2 * MAX_RECORD_BYTES), 413, error);
      await expectNothing(new Uint8Array(gzipSync(long)), 413, error, gzip);
      const bomb = new Uint8Array(gzipSync(Buffer.alloc(16 * MAX_RECORD_BYTES, ' ')));
      expect(bomb.length).toBeLessThan(MAX_RECORD_BYTES);
      await expectNothing(bomb, 413, error, gzip);
      const noise = new Uint8Array(randomBytes(MAX_RECORD_BYTES + 1));
      await expectNothing(noise, 413, error, gzip);
    });

    test('a body that is not gzip, or a part of one, is 400', async () => {
      const packed = gzipSync(JSON.stringify(record(newId())));
      const flipped = Buffer.from(packed);
      flipped[packed.length - 8] = (flipped[packed.length - 8] ?? 0) ^ 1;
      for (const bytes of [
        packed.subarray(0, -9),
        packed.subarray(0, 5),
        flipped,
        Buffer.from('{}'),
        Buffer.alloc(0),
      ]) {
        const error = bad(['invalid_json', expect.any(String) as string]);
        await expectNothing(new Uint8Array(bytes), 400, error, { 'content-encoding': 'gzip' });
      }
    });

    test.each([
      [{ 'content-type': 'application/xml' }, 'Content-Type: application/xml'],
      [{ 'content-type': 'application/x-ndjson' }, 'Content-Type: application/x-ndjson'],
      [{ 'content-encoding': 'br' }, 'Content-Encoding: br'],
      [{ 'content-encoding': 'gzip, gzip' }, 'Content-Encoding: gzip, gzip'],
    ])('a record with the headers %j is 415', async (headers, details) => {
      const error = errorsOf('Unsupported Media Type', ['unsupported_media_type', details]);
      await expectNothing(record(newId()), 415, error, headers);
    });

    test.each(['application/x-www-form-urlencoded', 'text/plain', 'application/octet-stream'])(
      'a body that is not JSON is 415 as %s',
      async (type) => {
        const error = errorsOf('Unsupported Media Type', ['unsupported_media_type', `Content-Type: ${type}`]);
        for (const body of ['user_id=u&event_name=x&company_id=c', '"user_id"', 'x'])
          await expectNothing(body, 415, error, { 'content-type': type });
      },
    );
  });

  describe('a key', () => {
    // proves: environments-apart
    test('a key writes to its own environment only', async () => {
      const id = newId();
      const other = await t().addEnvironment(`other-${table}`);
      const { environmentId } = other.environment;
      await site.accept(path, record(id, { of: 'default' }));
      expect(await stored(id, environmentId)).toEqual([]);
      await site.accept(path, record(id, { of: 'other', more: 'x' }), { key: other.key });
      expect([await stored(id), await stored(id, environmentId)]).toEqual([
        [{ of: 'default' }],
        [{ of: 'other', more: 'x' }],
      ]);
    });
  });

  describe('an Idempotency-Key', () => {
    const once = (key: string, body: unknown, options: { readonly key?: string } = {}) =>
      site.post(path, body, { headers: { 'idempotency-key': key }, ...options });
    /** Returns the rows with the id, each with the id of the transaction that wrote it. */
    const rows = (id: string) =>
      site.sql(
        `select xmin::text, t.* from sluice.${table} t where ${table === 'companies' ? 'company_id' : 'user_id'} = $1`,
        [id],
      );
    const conflict = errorsOf('Conflict', ['idempotency_conflict', 'Idempotency-Key']);

    test('a record repeated with its Idempotency-Key is stored once, and answered alike', async () => {
      const id = newId();
      const first = await once(id, record(id, { a: '1' }));
      const before = await rows(id);
      const second = await once(id, record(id, { a: '1' }));
      for (const { status, body, headers } of [first, second]) {
        expect([status, body, headers.get('content-length')]).toEqual([202, null, '0']);
      }
      expect([before.length, await rows(id)]).toEqual([1, before]);
      const packed = new Uint8Array(gzipSync(bodyOf(record(id, { a: '1' }))));
      const headers = { 'idempotency-key': id, 'content-encoding': 'gzip' };
      expect((await site.post(`${path}/?again`, packed, { headers })).status).toBe(202);
      expect(await rows(id)).toEqual(before);
    });

    test('twenty records at once with one Idempotency-Key are written once', async () => {
      const id = newId();
      await site.sql(`create sequence sluice.writes_of_${table}`);
      await site.sql(`
        create function sluice.count_${table}() returns trigger language plpgsql as $$
        begin
          perform nextval('sluice.writes_of_${table}');
          return new;
        end $$`);
      await site.sql(`
        create trigger count before insert on sluice.${table} for each row
        when (new.${table === 'companies' ? 'company_id' : 'user_id'} = '${id}') execute function sluice.count_${table}()`);
      const answers = await Promise.all(Array.from({ length: 20 }, () => once(id, record(id))));
      expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 202));
      const [writes] = await site.sql(`select last_value, is_called from sluice.writes_of_${table}`);
      expect([writes, (await rows(id)).length]).toEqual([{ last_value: 1, is_called: true }, 1]);
    });

    test('an Idempotency-Key is 409 for another body, and for another route', async () => {
      const id = newId();
      expect((await once(id, record(id))).status).toBe(202);
      const before = await rows(id);
      const other = await once(id, record(id, { a: '1' }));
      expect({ status: other.status, body: other.body }).toEqual({ status: 409, body: conflict });
      const both = { user_id: newId(), event_name: 'x', company_id: newId() };
      const key = newId();
      expect((await once(key, both)).status).toBe(202);
      const counts = await site.countRows();
      for (const elsewhere of kinds.filter((each) => each.path !== path)) {
        const { status, body } = await site.post(elsewhere.path, both, {
          headers: { 'idempotency-key': key },
        });
        expect({ status, body }).toEqual({ status: 409, body: conflict });
      }
      expect(await site.countRows()).toEqual(counts);
      expect(await rows(id)).toEqual(before);
    });

    test('an Idempotency-Key identifies one request in each environment', async () => {
      const id = newId();
      const other = await t().addEnvironment(`keys-${table}`);
      expect((await once(id, record(id, { of: 'default' }))).status).toBe(202);
      expect((await once(id, record(id, { of: 'other' }), { key: other.key })).status).toBe(202);
      expect(await stored(id, other.environment.environmentId)).toEqual([{ of: 'other' }]);
      expect(await stored(id)).toEqual([{ of: 'default' }]);
    });

    test('the Idempotency-Key of a refused request is free for the corrected one', async () => {
      const id = newId();
      expect((await once(id, record(id, { a: '\0' }))).status).toBe(400);
      const poisoned = newId();
      await refuseAt('statement', table, poisoned);
      expect((await once(id, record(poisoned))).status).toBe(400);
      expect((await once(id, record(id, { a: '1' }))).status).toBe(202);
      expect([await stored(poisoned), await stored(id)]).toEqual([[], [{ a: '1' }]]);
    });

    test('an Idempotency-Key may be used again after a day', async () => {
      const id = newId();
      expect((await once(id, record(id))).status).toBe(202);
      const age = (hours: string) =>
        site.sql(
          `update sluice.idempotency_keys set created_at = now() - $2::interval where idempotency_key = $1`,
          [id, hours],
        );
      await age('23 h 59 min');
      expect((await once(id, record(id, { a: '1' }))).status).toBe(409);
      await age('24 h 1 min');
      expect((await once(id, record(id, { a: '1' }))).status).toBe(202);
      expect(await stored(id)).toContainEqual({ a: '1' });
    });

    test('an Idempotency-Key has 1 to 255 printable ASCII characters', async () => {
      for (const key of [`${table} `.padEnd(255, 'k'), `~ "key" ${table}`, `a,b ${table}`]) {
        const id = newId();
        expect([key, (await once(key, record(id))).status, await stored(id)]).toEqual([key, 202, [{}]]);
      }
      for (const key of ['k'.repeat(256), 'ü', '', 'a\tb']) {
        const id = newId();
        const { status, body } = await once(key, record(id));
        const error = errorsOf('Bad Request', ['invalid_field', 'Idempotency-Key']);
        expect({ key, status, body }).toEqual({ key, status: 400, body: error });
        expect(await stored(id)).toEqual([]);
      }
    });
  });

  describe('a record that only the database refuses', () => {
    // proves: record-alone
    test.each(['statement', 'commit'] as const)(
      'a record refused at its %s is 400 alone, and the others of its statement are stored once',
      async (moment) => {
        const poison = newId();
        const attempts = await refuseAt(moment, table, poison);
        const others = Array.from({ length: 60 }, newId);
        const ids = others.toSpliced(30, 0, poison);
        await site.accept(path, record(newId()));
        const statuses = await site.pipeline(ids.map((id) => [path, record(id, { of: id })] as const));
        expect(statuses).toEqual(ids.map((id) => (id === poison ? 400 : 202)));
        for (const id of others) expect(await stored(id)).toEqual([{ of: id }]);
        expect(await stored(poison)).toEqual([]);
        // All records were written by one statement, which failed. To find the record that caused
        // this failure, the service wrote the records again, so there are more attempts than
        // records.
        expect(await attempts()).toBeGreaterThan(61);
      },
    );
  });

  test('a record whose statement loses its connection is 503, and the next attempt stores it once', async () => {
    const id = newId();
    await site.accept(path, record(newId()));
    const lock = await site.hold(`lock table sluice.${table} in share row exclusive mode`);
    const answer = site.post(path, record(id));
    const [pid] = await site.blocked();
    await site.sql('select pg_terminate_backend($1)', [pid]);
    const { status, headers, body } = await answer;
    expect({ status, body }).toEqual({
      status: 503,
      body: errorsOf('Service Unavailable', ['unavailable', '']),
    });
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    await lock.release();
    await site.accept(path, record(id));
    expect(await stored(id)).toEqual([{}]);
  });
});

const t = () => site.t;

/** Returns a record of exactly `bytes` bytes, in which no value is larger than 64 KiB. */
function ofBytes(record: Properties, bytes: number): string {
  const metadata: Record<string, string> = {};
  const length = () => Buffer.byteLength(JSON.stringify({ ...record, metadata }));
  for (let i = 0; length() < bytes; i++) {
    metadata[`p${i}`] = '';
    const room = bytes - length();
    // Leaves room for the name of the next property after a full value.
    metadata[`p${i}`] = 'x'.repeat(room > MAX_VALUE_BYTES ? Math.min(room, MAX_VALUE_BYTES) - 100 : room);
  }
  return JSON.stringify({ ...record, metadata });
}

let poisons = 0;

/**
 * Makes PostgreSQL refuse the row with the id and report invalid data. Returns a function that
 * counts later writes to the table, including rolled-back ones.
 */
async function refuseAt(
  moment: 'statement' | 'commit',
  table: string,
  id: string,
  sqlstate = '22023',
): Promise<() => Promise<number>> {
  const name = `poison_${++poisons}`;
  const column = table === 'companies' ? 'company_id' : 'user_id';
  await site.sql(`create sequence sluice.${name}`);
  await site.sql(`
    create function sluice.count_${name}() returns trigger language plpgsql as $$
    begin
      perform nextval('sluice.${name}');
      return new;
    end $$`);
  await site.sql(`
    create function sluice.refuse_${name}() returns trigger language plpgsql as $$
    begin
      raise exception 'not stored' using errcode = '${sqlstate}';
    end $$`);
  await site.sql(`
    create trigger a_${name} before insert on sluice.${table} for each row execute function sluice.count_${name}()`);
  await site.sql(`
    create ${moment === 'commit' ? 'constraint trigger' : 'trigger'} b_${name} after insert on sluice.${table}
    ${moment === 'commit' ? 'deferrable initially deferred' : ''}
    for each row when (new.${column} = '${id}') execute function sluice.refuse_${name}()`);
  return async () => {
    const [row] = await site.sql<{ n: number }>(`select last_value as n from sluice.${name}`);
    return row?.n ?? 0;
  };
}
