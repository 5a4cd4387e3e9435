import { describe, expect, test } from 'vitest';
import { propose, sourceOf } from './refuse.ts';

/** The name of each proposal, `?` where another reading is as likely, and what it makes of the first record. */
async function mendsOf(source: ReturnType<typeof sourceOf>, ...records: (string | Buffer)[]) {
  const { rejects, proposals } = await propose(source, records);
  return {
    refused: rejects.length,
    shape: rejects[0]?.shape,
    mends: proposals.map(({ id, isAmbiguous, accepted, samples }) => {
      const name = `${id.slice(14)}${isAmbiguous ? '?' : ''}`;
      return `${name} ${accepted}: ${samples[0]?.after}`;
    }),
  };
}

const events = sourceOf({ columns: ['event_type', 'user_id', 'event_name', 'inserted_at'] });
const users = sourceOf({ columns: ['user_id', 'name', 'plan'] });
const json = sourceOf(null);
const event = (time: string) => `track,u1,signed_up,${time}`;

describe('times', () => {
  // proves: causes-exact
  test('where a day beyond 12 shows that the day comes first, only that is proposed', async () => {
    expect(await mendsOf(events, event('01/02/2026'), event('31/12/2025'))).toEqual({
      refused: 2,
      shape: '99/99/9999',
      mends: ['day-first 2: 2026-02-01'],
    });
  });

  // proves: causes-exact
  test('where nothing shows which comes first, day first and month first are both proposed, as ambiguous', async () => {
    expect((await mendsOf(events, event('01/02/2026'), event('3/4/2026'))).mends).toEqual([
      'day-first? 2: 2026-02-01',
      'month-first? 2: 2026-01-02',
    ]);
  });

  test.each([
    ['12/31/2025 2:05 PM', '99/99/9999 99:99 a', 'month-first 1: 2025-12-31T14:05:00'],
    ['31.12.2025 23:59:01', '99.99.9999 99:99:99', 'day-first 1: 2025-12-31T23:59:01'],
    ['2025/12/31', '9999/99/99', 'year-first 1: 2025-12-31'],
    ['2025-12-31 10:00:00 UTC', '9999-99-99 99:99:99 a', 'year-first 1: 2025-12-31T10:00:00Z'],
    ['31 Dec 2025', '99 a 9999', 'month-name 1: 2025-12-31'],
    ['"Dec 31, 2025"', 'a 99, 9999', 'month-name 1: 2025-12-31'],
    [
      'Wed Dec 31 2025 10:00:00 GMT+0100 (CET)',
      'a 99 9999 99:99:99 a+9999 (a)',
      'month-name 1: 2025-12-31T10:00:00+01:00',
    ],
    ['"1700000000,25"', '9…,99', 'decimal-comma 1: 1700000000.25'],
    [' 2025-12-31 ', '␠9999-99-99␠', 'trim 1: 2025-12-31'],
    ['N/A', 'n/a', 'no-value 1: '],
  ])('%s is mended', async (time, shape, mend) => {
    expect(await mendsOf(events, event(time))).toEqual({ refused: 1, shape, mends: [mend] });
  });

  test.each(['31/31/2025', '2025-02-30', 'soon', '1/1/1850'])('%s has no mend', async (time) => {
    expect(await mendsOf(events, event(time))).toMatchObject({ refused: 1, mends: [] });
  });

  // proves: causes-exact
  test('are mended in JSON too, where the record keeps its other values to the digit', async () => {
    const record =
      '{"event_type":"track","user_id":"u","event_name":"e","inserted_at":"31/12/2025","n":12345678901234567890}';
    const { proposals } = await propose(json, [record]);
    expect(proposals[0]?.samples[0]?.line.toString()).toMatch(
      /^\{"event_type":"track","user_id":"u","event_name":"e","inserted_at":"2025-12-31","n":12345678901234567890,"sluice_reject":\{"row":1,/,
    );
  });
});

describe('words', () => {
  test.each([
    ['Track', 'Track', 'known-kind 1: track'],
    ['pageView', 'pageView', 'known-kind 1: page_view'],
    ['identify-user', 'identify-user', 'known-kind 1: identify_user'],
  ])('the kind %s is read as ours', async (kind, shape, mend) => {
    expect(await mendsOf(events, `${kind},u1,x,2026-01-01`)).toEqual({ refused: 1, shape, mends: [mend] });
  });
});

describe('records of CSV', () => {
  test.each([
    [
      'with another delimiter',
      'u1;Ada;pro',
      '1 cell where 3 are named',
      ['semicolon-delimiter 1: u1,Ada,pro'],
    ],
    [
      'with single quotes',
      "u1,'Ada, Countess',pro",
      '4 cells where 3 are named',
      ['single-quotes 1: u1,"Ada, Countess",pro'],
    ],
    ['with a decimal comma', 'u1,1,5,pro', '4 cells where 3 are named', ['joined-decimals 1: u1,1.5,pro']],
    ['with a quote inside a cell', 'u1,12" pipe,pro', '', ['inner-quotes 1: u1,"12"" pipe",pro']],
    [
      'with backslashes before quotes',
      'u1,"say \\"hi\\"",pro',
      '',
      ['backslash-quotes 1: u1,"say ""hi""",pro'],
    ],
    ['whose words a comma parts', 'u1,a,b,pro', '4 cells where 3 are named', []],
    ['without an id', ',Ada,pro', 'empty', []],
  ])('%s', async (_, record, shape, mends) => {
    expect(await mendsOf(users, record)).toEqual({ refused: 1, shape, mends });
  });

  test('bytes in windows-1252 are read so, whatever the column', async () => {
    const records = ['u1,Zoë Müller,pro', 'u2,René,gratuité'].map((text) => Buffer.from(text, 'latin1'));
    const { refused, mends } = await mendsOf(users, ...records);
    expect([refused, mends]).toEqual([2, ['windows-1252 2: u1,Zoë Müller,pro']]);
  });

  // proves: causes-exact
  test('bytes of which some are UTF-8 and some are not have no mend', async () => {
    const mixed = Buffer.concat([Buffer.from('u1,Zoë '), Buffer.from('Müller,pro', 'latin1')]);
    expect(await mendsOf(users, mixed)).toMatchObject({ refused: 1, mends: [] });
  });

  test('apostrophes before formulas may be ours or not: both are proposed', async () => {
    const doubtful = sourceOf({ columns: ['user_id', 'name'], defused: 'doubtful' });
    const { proposals } = await propose(doubtful, ["u1,'=1+1"]);
    expect(
      proposals.map(({ samples, isAmbiguous }) => [samples[0]?.line.toString().slice(0, 12), isAmbiguous]),
    ).toEqual([
      ["u1,'=1+1,1,2", true],
      ["u1,''=1+1,1,", true],
    ]);
  });
});

test('metadata that are JSON in a text are read as the object, every digit kept', async () => {
  const record = '{"user_id":"u1","metadata":"{\\"id\\":12345678901234567890,\\n\\"n\\":1.50}"}';
  const { proposals } = await propose(json, [record]);
  expect(proposals).toMatchObject([
    { accepted: 1, samples: [{ after: '{"id":12345678901234567890,"n":1.50}' }] },
  ]);
  expect(proposals[0]?.samples[0]?.line.toString()).toContain(
    '{"user_id":"u1","metadata":{"id":12345678901234567890,"n":1.50},"sluice_reject":',
  );
});

test('a record of JSON that was cut off has no mend', async () => {
  const cut = { refused: 1, shape: '{"…a', mends: [] };
  expect(await mendsOf(json, '{"user_id":"u1","na')).toEqual(cut);
});
