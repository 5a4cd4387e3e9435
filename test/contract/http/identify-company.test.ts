import { afterAll, describe, expect, test } from 'vitest';
import { openRecordSite, type ProblemText } from '../../support/servers/records.ts';

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
  test('numbers of metadata that would become kilobytes of zeros are refused, each by name', async () => {
    await refuse(
      '{"company_id":"c","beside":1e5000,"metadata":{"ok":1e1000,"a":1e1001,"b":-1E-5000,"c":{"d":[1e99999999999]}}}',
      ['invalid_metadata_value', 'beside'],
      ['invalid_metadata_value', 'metadata.a'],
      ['invalid_metadata_value', 'metadata.b'],
      ['invalid_metadata_value', 'metadata.c.d'],
    );
  });

  test('metadata of a company may nest 32 levels, counted from the properties, and no deeper', async () => {
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

  test('metadata with an absurd number of levels, digits or properties is refused', async () => {
    const many = Array.from({ length: 70_000 }, (_, n) => `"p${n}":1`).join(',');
    await refuse(`{"company_id":"c","a":${nested(500_000)}}`, ['invalid_metadata_value', '']);
    await refuse(`{"company_id":"c","a":${'1'.repeat(60_000)}}`, ['invalid_metadata_value', 'a']);
    await refuse(`{"company_id":"c","metadata":{${many}}}`, ['invalid_metadata_value', 'metadata']);
  });

  test('a nested value of metadata may have 64 KiB as JSON, and not a byte more', async () => {
    const list = (bytes: number) => ['é', 'x'.repeat(bytes - '["é",""]'.length - 1)];
    expect(Buffer.byteLength(JSON.stringify(list(65_536)))).toBe(65_536);
    await identify({ company_id: 'large', metadata: { list: list(65_536) } });
    expect((await stored('large')).metadata).toEqual({ list: list(65_536) });
    await refuse({ company_id: 'too-large', metadata: { list: list(65_537) } }, [
      'invalid_metadata_value',
      'metadata.list',
    ]);
  });
});

describe('the id', () => {
  test('a company with contradicting ids, or without an id, is refused', async () => {
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
});
