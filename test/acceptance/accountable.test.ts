import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { preparedDataDir, startService, temporaryFolder } from './cli.ts';
import { call, type Job, jobEnded, query } from './service.ts';

const rows = 1_000_000;
/** Refused records, and of how many rows one is of each cause. */
const refused = {
  decimalComma: 100,
  otherEncoding: 100,
  innerQuotes: 100,
  noId: 200,
  noAmount: 200,
} as const;
const ofCause = (every: number): number => rows / every;

/** A row of the file, as people and programs write it: one in 25 is wrong in one of five ways. */
function line(n: number): string {
  const amount = `${n % 1_000}.5`;
  switch (n % 200) {
    case 7:
    case 107:
      return `u${n},Anna,${n % 1_000},5\n`;
    case 23:
    case 123:
      return `u${n},M\xfcller,${amount}\n`;
    case 41:
    case 141:
      return `u${n},"Anna "Ann" Lee",${amount}\n`;
    case 59:
      return `,Anna,${amount}\n`;
    case 159:
      return `u${n},Anna\n`;
    default:
      return `u${n},Anna,${amount}\n`;
  }
}

function* pieces(): Generator<Buffer> {
  yield Buffer.from('user_id,name,amount\n');
  for (let n = 1; n <= rows; ) {
    let text = '';
    for (const end = n + 5_000; n < end && n <= rows; n++) text += line(n);
    yield Buffer.from(text, 'latin1');
  }
}

interface Cause {
  readonly error_code: string;
  readonly count: number;
  readonly proposals: readonly { readonly id: string; readonly ambiguous: boolean }[];
}

test('a file of a million rows, of which 40 000 are refused for five causes, has none refused after three proposals and one edited file', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'customers.csv');
  await pipeline(Readable.from(pieces()), createWriteStream(file));
  const dataDir = await preparedDataDir();
  const { url, key } = await startService(dataDir);
  const post = async (path: string, init: RequestInit): Promise<Job> => {
    const response = await call(url, key, path, { method: 'POST', ...init });
    expect(response.ok, await response.clone().text()).toBe(true);
    return jobEnded(url, key, ((await response.json()) as Job).job_id, 240_000);
  };
  const csv = { 'content-type': 'text/csv' };
  const parent = await post('/v1/imports?filename=customers.csv&encoding=utf-8', {
    body: Readable.toWeb(createReadStream(file)) as ReadableStream,
    headers: { ...csv, 'content-length': String((await stat(file)).size) },
    duplex: 'half',
  } as RequestInit);
  const total = Object.values(refused).reduce((sum, every) => sum + ofCause(every), 0);
  expect(parent.counts).toMatchObject({ read: rows, inserted: rows - total, rejected: total });

  const job = `/v1/background_jobs/${parent.job_id}`;
  const causes = async (): Promise<readonly Cause[]> => {
    const response = await call(url, key, `${job}/rejects?group_by=cause`);
    return ((await response.json()) as { data: readonly Cause[] }).data;
  };
  const found = await causes();
  expect(found.map(({ error_code, count }) => [error_code, count]).sort()).toEqual(
    [
      ['invalid_quote', ofCause(refused.innerQuotes)],
      ['invalid_utf8', ofCause(refused.otherEncoding)],
      ['missing_id', ofCause(refused.noId)],
      ['wrong_field_count', ofCause(refused.decimalComma)],
      ['wrong_field_count', ofCause(refused.noAmount)],
    ].sort(),
  );
  const sure = found.flatMap(({ proposals: [first] }) => (first?.ambiguous === false ? [first.id] : []));
  expect(sure.map((id) => id.slice(id.indexOf('-') + 1)).sort()).toEqual([
    'inner-quotes',
    'joined-decimals',
    'windows-1252',
  ]);
  for (const apply of sure) {
    const body = JSON.stringify({ apply });
    const child = await post(`${job}/amend`, { body, headers: { 'content-type': 'application/json' } });
    expect(child.counts).toMatchObject({ read: 10_000, inserted: 10_000, rejected: 0 });
  }

  // What is left only a person knows: who the nameless are, and what is missing.
  const left = await (await call(url, key, `${job}/rejects`, { headers: { accept: 'text/csv' } })).text();
  const [head = '', ...records] = left.trimEnd().split('\n');
  const at = head.split(',').indexOf('sluice_row');
  const edited = records.map((record) => {
    const cells = record.split(',');
    const n = Number(cells[at]);
    return [`u${n}`, 'Anna', `${n % 1_000}.5`, ...cells.slice(3)].join(',');
  });
  const last = await post(`${job}/amend`, { body: `${[head, ...edited].join('\n')}\n`, headers: csv });
  expect(last.counts).toMatchObject({ inserted: 10_000, rejected: 0 });

  const after = (await (await call(url, key, job)).json()) as Job;
  expect(after).toMatchObject({ status: 'completed', counts: { rejected: 0, amended: total } });
  expect(await causes()).toEqual([]);
  // Every user is as a file without a mistake would have made it.
  const wrong = await query<{ users: number; wrong: number }>(
    dataDir,
    `select count(*)::int as users,
       count(*) filter (where metadata is distinct from jsonb_build_object('amount', (n % 1000) || '.5',
         'name', case n % 200 when 23 then 'Müller' when 123 then 'Müller' when 41 then 'Anna "Ann" Lee'
           when 141 then 'Anna "Ann" Lee' else 'Anna' end))::int as wrong
     from (select metadata, substr(user_id, 2)::int as n from sluice.users) as each`,
  );
  expect(wrong).toEqual([{ users: rows, wrong: 0 }]);
}, 300_000);
