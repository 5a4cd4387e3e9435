import { afterAll, describe, expect, test } from 'vitest';
import { openRecordSite, type ProblemText } from '../../support/records.ts';

const path = '/v1/companies/identify';
const site = await openRecordSite();
afterAll(() => site.close());

const identify = (record: unknown) => site.accept(path, record);
const refuse = (record: unknown, ...problems: readonly ProblemText[]) =>
  site.refuse(path, record, ...problems);
const nested = (levels: number) => `${'['.repeat(levels)}7${']'.repeat(levels)}`;
const stored = async (companyId: string) => {
  const company = await site.company(companyId);
  if (company === null) throw new Error(`there is no company ${companyId}`);
  return company;
};

describe('metadata', () => {
  test('keeps every digit of its numbers, wherever they stand', async () => {
    await identify(
      `{"company_id":"digits","beside":9007199254740993,"metadata":{"pi":3.14159265358979323846264338327950288,
        "list":[123456789012345678901234567890,{"tiny":-1e-400}],"huge":1e400,"exp":1.5E3,"edge":1e1000,
        "text":"1e5000","plain":0.1}}`,
    );
    const { exact } = await stored('digits');
    const kept = [
      '"beside": 9007199254740993',
      '"pi": 3.14159265358979323846264338327950288',
      `"list": [123456789012345678901234567890, {"tiny": -0.${'0'.repeat(399)}1}]`,
      `"huge": 1${'0'.repeat(400)}`,
      '"exp": 1500',
      `"edge": 1${'0'.repeat(1000)}`,
      '"text": "1e5000"',
      '"plain": 0.1',
    ];
    for (const each of kept) expect(exact).toContain(each);
    expect(exact.length).toBe(kept.join(', ').length + 2);
  });

  test('keeps a number that is nearly nothing, however it is written', async () => {
    await identify(`{"company_id":"tiny","a":1e-400,"b":0.${'0'.repeat(399)}1}`);
    const [row] = await site.sql(
      `select metadata -> 'a' = metadata -> 'b' as equal from sluice.companies where company_id = 'tiny'`,
    );
    expect(row).toEqual({ equal: true });
  });

  test('refuses numbers that would be kilobytes of zeros, naming each', async () => {
    await refuse(
      '{"company_id":"c","beside":1e5000,"metadata":{"ok":1e1000,"a":1e1001,"b":-1E-5000,"c":{"d":[1e99999999999]}}}',
      ['invalid_metadata_value', 'beside'],
      ['invalid_metadata_value', 'metadata.a'],
      ['invalid_metadata_value', 'metadata.b'],
      ['invalid_metadata_value', 'metadata.c.d'],
    );
  });

  test('may nest 32 levels, of which the properties are the first, and no deeper', async () => {
    const objects = (levels: number) => `${'{"a":'.repeat(levels)}7${'}'.repeat(levels)}`;
    for (const [i, value] of [nested(31), objects(31)].entries()) {
      await identify(`{"company_id":"deep${i}","beside":${value},"metadata":{"within":${value}}}`);
      expect((await stored(`deep${i}`)).metadata).toEqual({
        beside: JSON.parse(value),
        within: JSON.parse(value),
      });
    }
    await refuse(
      `{"company_id":"deep","beside":${nested(32)},"metadata":{"within":${objects(32)}}}`,
      ['invalid_metadata_value', 'beside'],
      ['invalid_metadata_value', 'metadata.within.a.a'],
    );
    const abyss = await site.post(path, `{"company_id":"c","metadata":{"x":${nested(500_000)}}}`);
    expect([abyss.status, await site.company('c')]).toEqual([400, null]);
  });

  test('is refused before it costs much: levels, digits and properties beyond all use', async () => {
    const many = Array.from({ length: 70_000 }, (_, n) => `"p${n}":1`).join(',');
    await refuse(`{"company_id":"c","a":${nested(500_000)}}`, ['invalid_metadata_value', '']);
    await refuse(`{"company_id":"c","a":${'1'.repeat(60_000)}}`, ['invalid_metadata_value', 'a']);
    await refuse(`{"company_id":"c","metadata":{${many}}}`, ['invalid_metadata_value', 'metadata']);
  });

  test('is refused for what stands deep inside it, with the place', async () => {
    const lone = '\ud800';
    await refuse(
      {
        company_id: 'c',
        metadata: {
          a: { b: ['\0'] },
          c: [[lone]],
          d: { e: { constructor: 1 } },
          f: { [`k${lone}`]: 1 },
          g: { ['n'.repeat(256)]: 1 },
        },
      },
      ['invalid_metadata_value', 'metadata.a.b'],
      ['invalid_metadata_value', 'metadata.c'],
      ['invalid_metadata_value', 'metadata.d.e.constructor'],
      ['invalid_metadata_value', 'metadata.f.k\ufffd'],
      ['invalid_metadata_value', `metadata.g.${'n'.repeat(40)}…`],
    );
  });

  test('value that nests may have 64 KiB as JSON, and not a byte more', async () => {
    const list = (bytes: number) => ['é', 'x'.repeat(bytes - '["é",""]'.length - 1)];
    expect(Buffer.byteLength(JSON.stringify(list(65_536)))).toBe(65_536);
    await identify({ company_id: 'large', metadata: { list: list(65_536) } });
    expect((await stored('large')).metadata).toEqual({ list: list(65_536) });
    await refuse({ company_id: 'too-large', metadata: { list: list(65_537) } }, [
      'invalid_metadata_value',
      'metadata.list',
    ]);
  });

  test('value of long numbers is measured as it was sent', async () => {
    const numbers = Array.from({ length: 3_600 }, (_, i) => `1234567890123${1000 + (i % 1000)}`);
    const list = `[${numbers.join(',')}]`;
    expect(list.length).toBeLessThan(65_536);
    const record = `{"company_id":"long-numbers","list":${list},"more":"${'x'.repeat(4_000)}"}`;
    expect((await site.post(path, record)).status).toBe(202);
  });
});

describe('the id', () => {
  test('may be a number, or stand in an object company, of which the rest is a property', async () => {
    await identify('{"company_id":9007199254740993,"a":1}');
    expect((await stored('9007199254740993')).metadata).toEqual({ a: 1 });
    await identify({ company: { company_id: 'within' }, metadata: { a: 1 } });
    await identify({ company: { id: 'within', name: 'x' }, metadata: { b: 1 } });
    expect((await stored('within')).metadata).toEqual({ a: 1, b: 1, company: { name: 'x' } });
  });

  test('is refused where a second one contradicts it, and where there is none', async () => {
    await refuse({ company_id: 'a', company: { company_id: 'b' } }, [
      'invalid_field',
      'company.company_id and company_id',
    ]);
    await refuse({ company_id: 'a', company: { id: 'b' } }, ['invalid_field', 'company.id and company_id']);
    await refuse({ company: { name: 'x' } }, ['missing_field', 'company_id']);
    await refuse({ company: {}, metadata: { company_id: 'x' } }, ['missing_field', 'company_id']);
    await identify({ company_id: 'agrees', company: { company_id: 'agrees', id: 'agrees' } });
    expect((await stored('agrees')).metadata).toEqual({});
  });

  test('does not make properties of company, id and a company_id in metadata ids', async () => {
    await identify({ company_id: 'plain', id: 7, company: 'x', metadata: { company_id: 'y' } });
    expect((await stored('plain')).metadata).toEqual({ id: 7, company: 'x', company_id: 'y' });
  });
});

describe('a company that is there already', () => {
  test('keeps what is not mentioned, and loses what is null', async () => {
    await identify({ company_id: 'again', metadata: { a: 1, b: { x: 1 }, c: 'old' } });
    await identify({ company_id: 'again', metadata: { b: { y: null }, c: null, never: null, d: [null] } });
    expect((await stored('again')).metadata).toEqual({ a: 1, b: { y: null }, d: [null] });
    await identify({ company_id: 'again-new', metadata: { a: null, b: 1 } });
    expect((await stored('again-new')).metadata).toEqual({ b: 1 });
  });

  test('is seen again with every identify, and updated only by what is new', async () => {
    await identify({ company_id: 'times', metadata: { a: 1, b: [1, { c: 1.0 }] } });
    const first = await stored('times');
    expect([first.last_seen_at, first.updated_at]).toEqual([first.first_seen_at, first.first_seen_at]);
    let last = first;
    for (const record of [{}, { a: 1 }, { metadata: { b: [1, { c: 1 }] } }, { a: 1, absent: null }]) {
      await identify({ company_id: 'times', ...record });
      const now = await stored('times');
      expect([record, now]).toEqual([record, { ...first, last_seen_at: now.last_seen_at }]);
      expect(now.last_seen_at > last.last_seen_at).toBe(true);
      last = now;
    }
    for (const record of [{ a: 2 }, { b: [] }, { n: 1 }, { n: null }]) {
      await identify({ company_id: 'times', ...record });
      const now = await stored('times');
      expect([record, now.updated_at > last.updated_at]).toEqual([record, true]);
      expect([now.last_seen_at, now.first_seen_at]).toEqual([now.updated_at, first.first_seen_at]);
      last = now;
    }
  });

  test('keeps the marks of the load that wrote it, and its users', async () => {
    await site.sql(
      `insert into sluice.companies (environment_id, company_id, metadata, load_id, load_chunk, load_touches)
       values ($1, 'loaded', '{"a": 1}', 41, 42, 43)`,
      [site.t.environment.environmentId],
    );
    await site.accept('/v1/identify', { user_id: 'of-loaded', company_id: 'loaded' });
    const user = await site.user('of-loaded');
    await identify({ company_id: 'loaded', metadata: { b: 2 } });
    await identify({ company_id: 'loaded', metadata: { c: null } });
    expect(
      await site.sql(
        `select load_id, load_chunk, load_touches, metadata from sluice.companies where company_id = 'loaded'`,
      ),
    ).toEqual([{ load_id: 41, load_chunk: 42, load_touches: 43, metadata: { a: 1, b: 2 } }]);
    expect(await site.user('of-loaded')).toEqual(user);
  });

  test('has the properties of all that come at once, from users too', async () => {
    const each = Array.from({ length: 25 }, (_, i) => i);
    await Promise.all([
      ...each.map((i) => identify({ company_id: 'crowd', [`c${i}`]: i })),
      ...each.map((i) =>
        site.accept('/v1/identify', { user_id: `crowd${i}`, company: { company_id: 'crowd', [`u${i}`]: i } }),
      ),
    ]);
    expect((await stored('crowd')).metadata).toEqual(
      Object.fromEntries(each.flatMap((i) => [[`c${i}`, i] as const, [`u${i}`, i] as const])),
    );
  });

  test('takes identifies that are pipelined in their order, those of one statement too', async () => {
    const each = Array.from({ length: 100 }, (_, i) => i + 1);
    const statuses = await site.pipeline(
      each.map((i) => [path, { company_id: 'line', x: i, [`p${i % 3}`]: i % 2 === 0 ? i : null }] as const),
    );
    expect(statuses).toEqual(each.map(() => 202));
    expect((await stored('line')).metadata).toEqual({ x: 100, p1: 100, p2: 98 });
  });
});

describe('the lists of properties', () => {
  test('lists the new properties with their types, a wider one when values differ', async () => {
    const { key, environment } = await site.t.addEnvironment('properties');
    const listed = async () =>
      site.sql(
        `select key, data_type, entity, xmin::text as version from sluice.properties
         where environment_id = $1 and not is_auto_property order by key`,
        [environment.environmentId],
      );
    const types = async () =>
      Object.fromEntries((await listed()).map((row) => [row['key'], row['data_type']]));
    const record =
      '{"company_id":"c","n":1,"big":1e400,"t":"x","d":"2026-11-20","b":true,"o":{"inner":1},"l":[1],"none":null}';
    await site.accept(path, record, { key });
    const found = {
      n: 'numeric',
      big: 'numeric',
      t: 'string',
      d: 'date',
      b: 'boolean',
      o: 'string',
      l: 'string',
    };
    expect(await types()).toEqual(found);
    const before = await listed();
    expect(new Set(before.map((row) => row['entity']))).toEqual(new Set(['companies']));
    await site.accept(path, record, { key });
    await site.onAnotherProcess((other) => other.accept(path, record, { key }));
    expect(await listed()).toEqual(before);
    await site.accept(path, { company_id: 'c', n: 'many', d: 7, b: null }, { key });
    expect(await types()).toEqual({ ...found, n: 'string', d: 'string' });
  });
});
