import { Type } from 'typebox';
import { expect, test } from 'vitest';
import { toGivenRequest } from '../../../src/domain/export.ts';
import { ExportOptions } from '../../../src/export/options.ts';
import { readRequest } from '../../../src/export/read-request.ts';
import type { ExportOption } from '../../../src/export/seam.ts';
import type { Database } from '../../../src/postgres/database.ts';

const wrong = { code: 'invalid_field', message: 'vip must be gold', details: 'vip' } as const;

const vip: ExportOption<string> = {
  schema: Type.String({ description: 'Only the users of this class.' }),
  flag: '--vip <class>',
  description: 'only the users of this class',
  read(given, problems) {
    if (given === 'gold') return 'Gold';
    problems.push(wrong);
    return null;
  },
  select: () => Promise.reject(new Error('no database is read')),
};

const options = new ExportOptions([{ options: { vip } }]);

test('an option of a capability is read and refused as a field of the core is', () => {
  const { request, problems, warnings } = readRequest(options, { vip: 'gold', segment_id: '7' });
  expect({ problems, warnings }).toEqual({ problems: [], warnings: [] });
  expect(toGivenRequest(request)).toMatchObject({ vip: 'Gold', segment_id: 7 });
  expect(readRequest(options, { vip: 'tin' }).problems).toEqual([wrong]);
  expect(readRequest(options, { vip: 7 }).problems).toMatchObject([{ details: 'vip' }]);
  expect(readRequest(options, { vib: 'gold' }).problems).toMatchObject([{ details: 'vib' }]);
});

test('two options of exports with the same name are refused when the program is put together', () => {
  const own = { options: { vip } };
  expect(() => new ExportOptions([own, own])).toThrow('two options vip');
  expect(() => new ExportOptions([{ options: { segment_id: vip } }])).toThrow('two options segment_id');
});

test('an export of removed records refuses every option that selects users', () => {
  const { problems } = readRequest(options, { since: '1:1:', include_removed: true, vip: 'gold' });
  expect(problems).toMatchObject([{ code: 'invalid_field', details: 'vip' }]);
});

test('an export with an option that this build lacks fails instead of selecting more users', async () => {
  const stored = { options: { vip: 'Gold' }, exclusions: [] };
  const fromCore = new ExportOptions([]).selectUsers({} as Database, 1, stored);
  await expect(fromCore).rejects.toThrow('no option vip');
});
