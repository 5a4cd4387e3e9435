import { describe, expect, test } from 'vitest';
import type { JobDetail as Job } from '../../../src/api/load.ts';
import type { Reject } from '../../../src/api/reject.ts';
import { type ErrorBody, openServer } from '../../support/http.ts';
import type { Tenant } from '../../support/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer({ worker: true });

type Edit = {
  readonly row: number;
  readonly raw?: string;
  readonly values?: Readonly<Record<string, string>>;
};

let environments = 0;
const tenant = (): Promise<Tenant> => t.addEnvironment(`edits${++environments}`);

async function ended({ key }: Tenant, jobId: string): Promise<Job> {
  return waitFor('the job to end', async () => {
    const { body } = await server.json<Job>(`/v1/background_jobs/${jobId}`, { key });
    return ['completed', 'failed'].includes(body.status) ? body : null;
  });
}

async function load(owner: Tenant, body: string | Buffer, query = '', type = 'text/csv'): Promise<string> {
  const { body: job } = await server.json<Job>(`/v1/imports${query}`, {
    method: 'POST',
    key: owner.key,
    body: new Uint8Array(Buffer.from(body as string)),
    headers: { 'content-type': type },
  });
  await ended(owner, job.job_id);
  return job.job_id;
}

const edit = <T = Job>({ key }: Tenant, jobId: string, records: readonly Edit[]) =>
  server.json<T>(`/v1/background_jobs/${jobId}/rejects/edits`, { key, json: { records } });

async function edited(owner: Tenant, jobId: string, records: readonly Edit[]): Promise<Job> {
  const { status, body } = await edit(owner, jobId, records);
  expect(body).toMatchObject({ status: 'queued' });
  expect(status).toBe(202);
  return ended(owner, body.job_id);
}

async function rejects({ key }: Tenant, jobId: string): Promise<readonly Reject[]> {
  const path = `/v1/background_jobs/${jobId}/rejects`;
  return (await server.json<{ data: readonly Reject[] }>(path, { key })).body.data;
}

async function users({ environment }: Tenant): Promise<Record<string, unknown>> {
  const rows = await t.system.db
    .selectFrom('users')
    .select(['user_id', 'metadata'])
    .where('environment_id', '=', environment.environmentId)
    .orderBy('user_id')
    .execute();
  return Object.fromEntries(rows.map((row) => [row.user_id, row.metadata]));
}

describe('an edit of a cell', () => {
  // proves: edited-cell
  test.each([
    [
      'quotes, leading zeros and a byte order mark',
      '',
      '\ufeffuser_id,zip,note\n,"007"," a ""b"", c "\nu2,1,\n',
    ],
    ['words for no value', '?null=NA', 'user_id,zip,note\n,"NA",NA\nu2,1,x\n'],
    [
      'single quotes and semicolons',
      '?quote=%27&delimiter=semicolon',
      "user_id;zip;note\n;'0;7';'it''s'\nu2;1;x\n",
    ],
    ['backslashes', '?escape=%5C', 'user_id,zip,note\n,"0\\"7","a\\\\b"\nu2,1,x\n'],
    [
      'another encoding',
      '?encoding=windows-1252',
      Buffer.from('user_id,zip,note\n,0\xfc7,\x80\nu2,1,x\n', 'latin1'),
    ],
    ['cells that are missing', '', 'user_id,zip,note\n,08\nu2,1,x\n'],
  ])('ends as if the file had been correct: with %s', async (_, query, file) => {
    const [owner, other] = [await tenant(), await tenant()];
    const jobId = await load(owner, file, query);
    const [reject] = await rejects(owner, jobId);
    expect(reject?.row).toBe(1);
    const short: Readonly<Record<string, string>> = reject?.cells?.length === 2 ? { note: '"' } : {};
    const job = await edited(owner, jobId, [{ row: 1, values: { user_id: 'u1', ...short } }]);
    expect(job).toMatchObject({ status: 'completed', counts: { read: 1, inserted: 1, rejected: 0 } });
    const text = Buffer.from(file as string).toString('latin1');
    const corrected = text.replace(/\n(?=[,;])/, '\nu1').replace('u1,08', 'u1,08,""""');
    await load(other, Buffer.from(corrected, 'latin1'), query);
    expect(await users(owner)).toEqual(await users(other));
    expect(Object.keys(await users(owner))).toEqual(['u1', 'u2']);
  });
});

const broken =
  'user_id,name,plan\nu1,"Ann "Lee"" x,pro\nu2,"open,free\n"x" y",Joan,\nu4,"Zoe" Ray,pro\nu5,ok,ok\n';

describe('a record whose cells cannot be told', () => {
  test('is edited as its text, and all of its values are stored', async () => {
    const owner = await tenant();
    const jobId = await load(owner, broken, '?stray_quotes=refuse');
    const all = await rejects(owner, jobId);
    expect(all.map(({ cells }) => cells)).toEqual(all.map(() => null));
    const [first] = all;
    await edited(owner, jobId, [{ row: first?.row ?? 0, raw: 'u1,"Ann ""Lee""",pro' }]);
    expect((await users(owner))['u1']).toEqual({ name: 'Ann "Lee"', plan: 'pro' });
    const { counts } = await ended(owner, jobId);
    expect(counts).toMatchObject({ rejected: all.length - 1, amended: 1 });
  });

  // proves: edited-cell
  test('that is sent back unedited is refused as it was, and one that is still refused keeps its edit', async () => {
    const owner = await tenant();
    const jobId = await load(owner, broken, '?stray_quotes=refuse');
    const before = await rejects(owner, jobId);
    await edited(
      owner,
      jobId,
      before.map(({ row, raw }) => ({ row, raw })),
    );
    expect(await rejects(owner, jobId)).toEqual(before);
    const [first, second] = before;
    const raw = 'u1,"still "open,pro';
    await edited(owner, jobId, [
      { row: first?.row ?? 0, raw },
      { row: second?.row ?? 0, raw: ',no id,free' },
    ]);
    const after = await rejects(owner, jobId);
    expect(after[0]).toMatchObject({ row: first?.row, raw, cells: null });
    expect(after[1]).toMatchObject({
      raw: ',no id,free',
      error_code: 'missing_id',
      cells: ['', 'no id', 'free'],
    });
    expect(after.slice(2)).toEqual(before.slice(2));
  });
});

describe('refused, and nothing is sent, is', () => {
  test('what is no edit of a refused record', async () => {
    const owner = await tenant();
    const jobId = await load(owner, 'user_id,name\n,Ada\nu2,"a"b\nu3,c\n', '?stray_quotes=refuse');
    const cases: [Edit[], string][] = [
      [[{ row: 3, values: { name: 'x' } }], 'row 3 is no refused row of the job'],
      [[{ row: 1, values: { nome: 'x' } }], 'the file of the job has no such column'],
      [[{ row: 2, values: { name: 'x' } }], 'the cells of this record cannot be told apart; send its raw'],
      [[{ row: 2, raw: 'u2,x\nu9,y' }], 'the text is read as 2 records; an edit holds one'],
      [[{ row: 2, raw: ' , ' }], 'the edit leaves nothing of the record; to keep it refused, leave it out'],
      [[{ row: 1 }], 'an edit has either raw or values'],
      [[1, 1].map((row) => ({ row, raw: 'u1,x' })), 'row 1 comes twice'],
      [[{ row: 0, raw: '' }], 'an edit has the row of a refused record'],
    ];
    for (const [records, message] of cases) {
      const { status, body } = await edit<ErrorBody>(owner, jobId, records);
      expect([status, body.errors[0]?.message]).toEqual([400, expect.stringContaining(message)]);
    }
    expect(await rejects(owner, jobId)).toHaveLength(2);
    await edited(owner, jobId, [{ row: 1, values: { user_id: 'u1' } }]);
    const again = await edit<ErrorBody>(owner, jobId, [{ row: 1, values: { user_id: 'u1' } }]);
    expect([again.status, again.body.errors[0]?.error_code]).toEqual([409, 'already_amended']);
  });

  test('text that shows only a part of the record, or stands for bytes that are no text', async () => {
    const owner = await tenant();
    const long = 'x'.repeat(5_000);
    const bad = Buffer.from(`user_id,name\n,${long}\nu2,\xff\nu3,c\n`, 'latin1');
    const jobId = await load(owner, bad, '?encoding=utf-8');
    const [cut, undecodable] = await rejects(owner, jobId);
    const sent = [cut, undecodable].map((each) => [{ row: each?.row ?? 0, raw: `u${each?.raw}` }]);
    const answers = [];
    for (const records of sent)
      answers.push((await edit<ErrorBody>(owner, jobId, records)).body.errors[0]?.message);
    expect(answers).toEqual([
      'this record was shown only in part; send all of it',
      'U+FFFD stands for bytes of the record that are not text; replace it by what is meant',
    ]);
    await edited(owner, jobId, [{ row: 1, values: { user_id: 'u1' } }]);
    expect((await users(owner))['u1']).toEqual({ name: long });
  });
});
