import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { mendedUsersSql, oneIn, refusedFile, refusedOf } from '../support/refused-file.ts';
import { preparedDataDir, startService, temporaryFolder } from './cli.ts';
import { call, type Job, jobEnded, query } from './service.ts';

const rows = 1_000_000;
const ofCause = (every: number): number => rows / every;

interface Cause {
  readonly error_code: string;
  readonly count: number;
  readonly proposals: readonly { readonly id: string; readonly ambiguous: boolean }[];
}

// proves: proposal-complete
test('a file of a million rows, of which 40 000 are refused for five causes, has none refused after three proposals and one edited file', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'customers.csv');
  await pipeline(Readable.from(refusedFile(rows)), createWriteStream(file));
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
  const total = refusedOf(rows);
  expect(parent.counts).toMatchObject({ read: rows, inserted: rows - total, rejected: total });

  const job = `/v1/background_jobs/${parent.job_id}`;
  const causes = async (): Promise<readonly Cause[]> => {
    const response = await call(url, key, `${job}/rejects?group_by=cause`);
    return ((await response.json()) as { data: readonly Cause[] }).data;
  };
  const found = await causes();
  expect(found.map(({ error_code, count }) => [error_code, count]).sort()).toEqual(
    [
      ['invalid_quote', ofCause(oneIn.innerQuotes)],
      ['invalid_utf8', ofCause(oneIn.otherEncoding)],
      ['missing_id', ofCause(oneIn.noId)],
      ['wrong_field_count', ofCause(oneIn.decimalComma)],
      ['wrong_field_count', ofCause(oneIn.noAmount)],
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
  const wrong = await query<{ users: number; wrong: number }>(dataDir, mendedUsersSql.replace('$1', 'null'));
  expect(wrong).toEqual([{ users: rows, wrong: 0 }]);
}, 300_000);
