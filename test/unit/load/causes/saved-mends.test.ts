import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { writeReplacementId } from '../../../../src/load/causes/mend-ids.ts';
import { createChunkReader } from '../../../../src/load/read-chunk.ts';
import { Rows } from '../../../../src/mapping/rows.ts';
import { hiddenValues } from '../../../../src/personal/values.ts';
import type { LoadSource } from '../../../../src/postgres/stores/running-loads.ts';
import { mendId } from '../../../support/mends.ts';
import { sourceOf } from './refuse.ts';

const mends = [
  mendId('day-first', 'invalid_date', 'inserted_at', '99/99/9999'),
  mendId('known-kind', 'unknown_event_type', 'event_type', 'Track'),
  mendId('semicolon-delimiter', 'wrong_field_count', null, '1 cell where 4 are named'),
];

const rows = new Rows();

/** Reads a chunk: its events as COPY reads them, what is refused, and the numbers of the records that were mended. */
async function read(source: LoadSource, records: readonly string[]) {
  const bytes = Buffer.from(records.map((record) => `${record}\n`).join(''));
  const reader = createChunkReader(source, { readRange: async () => bytes }, hiddenValues, rows);
  const chunk = {
    byteStart: 100,
    byteEnd: 100 + bytes.length,
    firstRow: 11,
    firstLine: 21,
    oversized: false,
  };
  await reader.read({ ...chunk, rowCount: records.length });
  return {
    events: Array.from({ length: rows.events.rows }, (_, row) => rows.events.line(row).toString()),
    rejects: rows.rejects,
    mended: [...(rows.records.written?.mended.keys() ?? [])],
  };
}

/** A record as it comes, and as a person would have mended it; null: the mends do not help. */
type Case = readonly [written: string, meant: string | null];

const csv = sourceOf({ columns: ['event_type', 'user_id', 'event_name', 'inserted_at'] });
const csvCases: readonly Case[] = [
  ['track,u1,a,2025-12-30', 'track,u1,a,2025-12-30'],
  ['track,u2,"b, ""c""\nd",31/12/2025', 'track,u2,"b, ""c""\nd",2025-12-31'],
  ['Track,u3,a,1/2/2025', 'track,u3,a,2025-02-01'],
  ['track;u4;a;2025-12-30', 'track,u4,a,2025-12-30'],
  ['track;u5;x y;31/12/2025', 'track,u5,x y,2025-12-31'],
  ['track,u6,a,31/31/2025', null],
  ['Track,,a,31/12/2025', null],
  ['track,u7,"a"x,31/12/2025', null],
];
const json = sourceOf(null);
const jsonCases: readonly Case[] = csvCases.flatMap(([written, meant]): Case[] => {
  const object = (text: string) => {
    const [event_type, user_id, event_name, inserted_at] = text.split(',');
    return JSON.stringify({ event_type, user_id, event_name, inserted_at });
  };
  return /[";]/.test(written) ? [] : [[object(written), meant && object(meant)]];
});

// proves: saved-mends
describe.each([
  ['CSV', csv, csvCases],
  ['NDJSON', json, jsonCases],
] as const)('records of %s', (_, source, cases) => {
  test('are read as saved mends leave them, each in its place; what they do not help is refused as it is written', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...cases), { minLength: 1, maxLength: 30 }),
        async (chosen) => {
          const written = chosen.map(([record]) => record);
          const found = await read({ ...source, mends }, written);
          const meant = await read(
            source,
            chosen.map(([record, mended]) => mended ?? record),
          );
          expect(found.events).toEqual(meant.events);
          const changed = chosen.flatMap(([record, mended], at) =>
            mended === null || mended === record ? [] : [at],
          );
          expect(found.mended).toEqual(changed);
          const refused = (await read(source, written)).rejects;
          expect(found.rejects).toEqual(refused.filter(({ row }) => chosen[row - 11]?.[1] === null));
        },
      ),
    );
  });
});

// proves: saved-mends
test('a record that a saved mend would make a comment or a blank line is still one record', async () => {
  const dialect = { delimiter: ',', quote: '"', escape: '"', comment: '#', nulls: [] };
  const replaced = (find: string, by: string) => [
    writeReplacementId({ cause: null, column: 'user_id', find, by }),
  ];
  const two = sourceOf({ columns: ['user_id', 'plan'], dialect }, { mends: replaced('', '#1') });
  expect((await read(two, ['u1,pro', ',pro'])).rejects).toEqual([]);
  const long = 'y'.repeat(300);
  const one = sourceOf({ columns: ['user_id'], dialect }, { mends: replaced('y', '') });
  const { rejects } = await read(one, [`x${long}`, long]);
  expect(rejects.map(({ row, code }) => [row, code])).toEqual([[12, 'id_too_long']]);
});

// proves: saved-mends
test('a record that a saved mend cannot write in the dialect of its file is refused as it is', async () => {
  const dialect = { delimiter: '|', quote: '', escape: '', comment: '', nulls: [] };
  const source = sourceOf({ ...csv.header, dialect } as never, { mends });
  const records = ['track|u1|a|31/12/2025', 'track;u2;"a|b";31/12/2025'];
  const { events, rejects } = await read(source, records);
  expect([events.length, rejects.map(({ row, code }) => [row, code])]).toEqual([
    1,
    [[12, 'wrong_field_count']],
  ]);
});
