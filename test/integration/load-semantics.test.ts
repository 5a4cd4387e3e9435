import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { InputError } from '../../src/base/errors.ts';
import { pruneFiles } from '../../src/jobs/prune.ts';
import { MAX_REFUSED_AT_FIRST } from '../../src/load/chunk-store.ts';
import { cancelLoad, startLane } from '../../src/load/end.ts';
import type { Load } from '../../src/load/read-store.ts';
import { listRejects } from '../../src/load/rejects/rejects.ts';
import { retryLoad } from '../../src/load/retry.ts';
import {
  acceptFile,
  type FileOptions,
  newEnvironment,
  readProfiles,
  readVersions,
  runManually,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();

async function load(environmentId: number, content: string, options: FileOptions = {}): Promise<Load> {
  const ended = await runManually(await startManually(t.system, environmentId, content, options));
  expect(ended.failure).toBeNull();
  return ended;
}

async function loadIntoEmpty(content: string, options: FileOptions = {}) {
  const environmentId = await newEnvironment(t.system);
  const ended = await load(environmentId, content, options);
  return { ended, environmentId, ...(await readProfiles(t.system, environmentId)) };
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(InputError);
  return (error as InputError).problems[0].code;
}

const lines = (...items: readonly object[]) => items.map((item) => `${JSON.stringify(item)}\n`).join('');

describe('the entity of a record', () => {
  test('the header of a CSV decides: user_id makes users, company_id alone makes companies', async () => {
    const users = await loadIntoEmpty('company_id,user_id,a\nc,u,1\n');
    expect(users.users).toEqual({ u: { metadata: { a: '1' }, company: 'c' } });
    expect(users.companies).toEqual({ c: { metadata: {} } });
    const companies = await loadIntoEmpty('a,company_id\n1,c\n');
    expect(companies).toMatchObject({ users: {}, companies: { c: { metadata: { a: '1' } } } });
    expect(companies.ended.entity).toBe('companies');
  });

  test('each record of an NDJSON decides its own entity', async () => {
    const { users, companies } = await loadIntoEmpty(
      lines({ company_id: 'c', a: 1 }, { user_id: 'u', a: 2 }),
    );
    expect(users).toEqual({ u: { metadata: { a: 2 }, company: null } });
    expect(companies).toEqual({ c: { metadata: { a: 1 } } });
  });

  test('entity=companies makes companies of records that also have a user_id', async () => {
    const content = lines({ company_id: 'c', user_id: 'u', a: 1 });
    const { users, companies } = await loadIntoEmpty(content, { entity: 'companies' });
    expect(users).toEqual({});
    expect(companies).toEqual({ c: { metadata: { user_id: 'u', a: 1 } } });
    const csv = await loadIntoEmpty('company_id,user_id\nc,u\n', { entity: 'companies' });
    expect(csv.companies).toEqual({ c: { metadata: { user_id: 'u' } } });
  });

  test('entity=users refuses records without user_id', async () => {
    const { ended, companies } = await loadIntoEmpty(lines({ company_id: 'c' }, { user_id: 'u' }), {
      entity: 'users',
    });
    expect(ended.tally).toMatchObject({ inserted: 1, rejected: 1 });
    expect(companies).toEqual({});
    expect(await refusal(loadIntoEmpty('company_id,a\nc,1\n', { entity: 'users' }))).toBe(
      'unrecognised_columns',
    );
  });

  test('map gives columns and keys other names, and must name existing columns', async () => {
    const map = { ID: 'user_id', Firma: 'company_id', Plan: 'metadata.plan' };
    const expected = { u: { metadata: { plan: 'x', other: '1' }, company: 'c' } };
    expect((await loadIntoEmpty('ID,Firma,Plan,other\nu,c,x,1\n', { map })).users).toEqual(expected);
    const ndjson = lines({ ID: 'u', Firma: 'c', Plan: 'x', other: '1' });
    expect((await loadIntoEmpty(ndjson, { map })).users).toEqual(expected);
    expect(await refusal(loadIntoEmpty('user_id,a\nu,1\n', { map: { B: 'b' } }))).toBe('invalid_field');
  });

  test('rejects name a mapped column as the file does', async () => {
    const { environmentId, ended } = await loadIntoEmpty('ID,a\n,1\nu,1\n', { map: { ID: 'user_id' } });
    const { rejects } = await listRejects(t.system, environmentId, ended.jobId, { limit: 10, after: 0 });
    expect(rejects.map(({ column }) => column)).toEqual(['ID']);
  });
});

describe('values', () => {
  test('values of a CSV are stored as written', async () => {
    const values = ['007', '1.50', 'true', 'null', 'NULL', ' x ', '1e3', '2024-01-01', '{}'];
    const names = values.map((_, index) => `v${index}`);
    const { users } = await loadIntoEmpty(`user_id,${names.join(',')}\nu,${values.join(',')}\n`);
    expect(users['u']?.metadata).toEqual(
      Object.fromEntries(names.map((name, index) => [name, values[index]])),
    );
  });

  // proves: typed-columns
  test('values of a typed CSV column are typed, in any order of its chunks', async () => {
    const environmentId = await newEnvironment(t.system);
    const options = { chunkBytes: 1, source: { types: ['n=number', 'd=day_first'] } };
    const text = 'user_id,n,d\nu,1,1.2.2026\nu,"1,000",3.2.2026\n';
    await runManually(await startManually(t.system, environmentId, text, options), [1, 0]);
    const { users } = await readProfiles(t.system, environmentId);
    expect(users['u']?.metadata).toEqual({ n: 1000, d: '2026-02-03' });
  });

  test('values of JSON keep their type', async () => {
    const metadata = { s: '1', n: 1, t: true, f: false, a: [1, null], o: { x: null } };
    const { environmentId } = await loadIntoEmpty(lines({ user_id: 'u', metadata }));
    const { rows } = await sql<{ types: object }>`
      select jsonb_object_agg(key, jsonb_typeof(value)) as types
      from users, jsonb_each(metadata) where environment_id = ${environmentId}`.execute(t.system.db);
    expect(rows[0]?.types).toEqual({
      s: 'string',
      n: 'number',
      t: 'boolean',
      f: 'boolean',
      a: 'array',
      o: 'object',
    });
  });

  test('an empty CSV cell leaves the property, null removes it, and a null inside a value stays', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(environmentId, 'user_id,a,b,c\nu,1,2,3\n');
    await load(environmentId, 'user_id,a,b\nu,,9\n');
    await load(environmentId, lines({ user_id: 'u', metadata: { c: null, d: { e: null } } }));
    const { users } = await readProfiles(t.system, environmentId);
    expect(users['u']?.metadata).toEqual({ a: '1', b: '9', d: { e: null } });
    await load(environmentId, 'user_id,metadata\nu,"{""a"":null}"\n');
    expect((await readProfiles(t.system, environmentId)).users['u']?.metadata).toEqual({
      b: '9',
      d: { e: null },
    });
  });
  test('whole numbers as ids become strings, digit by digit', async () => {
    const content = '{"user_id":7,"company_id":12345678901234567890}\n{"user_id":8.0}\n{"company_id":-3}\n';
    const { users, companies } = await loadIntoEmpty(content);
    expect(Object.keys(users).sort()).toEqual(['7', '8']);
    expect(users['7']?.company).toBe('12345678901234567890');
    expect(Object.keys(companies).sort()).toEqual(['-3', '12345678901234567890']);
  });

  test('a value is replaced as a whole: an object replaces an object, an array an array', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(environmentId, lines({ user_id: 'u', a: { x: 1, y: 1 }, b: [1, 2], c: ['1'] }));
    await load(environmentId, lines({ user_id: 'u', a: { x: 1 }, b: [1], c: '1' }));
    const { users } = await readProfiles(t.system, environmentId);
    expect(users['u']?.metadata).toEqual({ a: { x: 1 }, b: [1], c: '1' });
  });
});

describe('the company of a user', () => {
  const company = async (environmentId: number) =>
    (await readProfiles(t.system, environmentId)).users['u']?.company;

  test('the company of a user is the last one named, an absent or empty cell keeps it, and null removes it', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(environmentId, lines({ user_id: 'u', company_id: 'a' }));
    await load(environmentId, lines({ user_id: 'u', x: 1 }));
    await load(environmentId, 'user_id,company_id,x\nu,,2\n');
    expect(await company(environmentId)).toBe('a');
    await load(environmentId, 'user_id,company_id\nu,b\n');
    expect(await company(environmentId)).toBe('b');
    await load(environmentId, lines({ user_id: 'u', company: { id: 'c', name: 'C' } }));
    expect(await company(environmentId)).toBe('c');
    await load(environmentId, lines({ user_id: 'u', company_id: null }));
    expect(await company(environmentId)).toBeNull();
    const { companies } = await readProfiles(t.system, environmentId);
    expect(companies).toEqual({ a: { metadata: {} }, b: { metadata: {} }, c: { metadata: { name: 'C' } } });
  });

  test('a null company removes the company of a user unless company_id names one', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(environmentId, lines({ user_id: 'u', company_id: 'a' }));
    await load(environmentId, lines({ user_id: 'u', company: null, company_id: 'b' }));
    expect(await company(environmentId)).toBe('b');
    await load(environmentId, lines({ user_id: 'u', company: null }));
    expect(await company(environmentId)).toBeNull();
  });

  test('every company that the records of a user name exists, in one chunk or in several', async () => {
    for (const chunkBytes of [1, 10_000]) {
      const { users, companies } = await loadIntoEmpty('user_id,company_id\nu,a\nu,b\nv,x\nu,c\n', {
        chunkBytes,
      });
      expect(users['u']?.company).toBe('c');
      expect(Object.keys(companies)).toEqual(['a', 'b', 'c', 'x']);
    }
  });
});

describe('max_errors', () => {
  const content = (bad: number, good: number) =>
    `user_id,a\n${'too,many,cells\n'.repeat(bad)}${Array.from({ length: good }, (_, index) => `u${index},1\n`).join('')}`;

  test.each([
    ['N', { count: 2 }, 2, 8],
    ['N%', { percent: 20 }, 2, 8],
    ['N% rounded down', { percent: 29.9 }, 2, 8],
    ['0', { count: 0 }, 0, 10],
  ])('max_errors of %s allows as many rejects', async (_, maxErrors, bad, good) => {
    const { ended } = await loadIntoEmpty(content(bad, good), { maxErrors, chunkBytes: 1 });
    expect(ended.tally).toMatchObject({ rejected: bad, inserted: good });
  });
});

describe('a load whose records were all refused', () => {
  const fails = async (content: string, options: FileOptions = {}) => {
    const environmentId = await newEnvironment(t.system);
    const manual = await startManually(t.system, environmentId, content, options);
    return { environmentId, manual, ended: await runManually(manual) };
  };

  // proves: all-refused
  test.each([
    [
      'another name for the id',
      lines({ id: 'a', plan: 'x' }, { id: 'b' }),
      {},
      /has id, plan\..*map=id=user_id/,
    ],
    ['CSV taken for NDJSON', 'user_id,a\nu,1\n', { format: 'ndjson' }, /format=csv/],
    ['NDJSON taken for CSV', `user_id\n${lines({ user_id: 'a', b: 1 })}`, {}, /format=ndjson/],
    ['Python, not JSON', "{'user_id': 'a'}\n", {}, /single quotes/],
    ['arrays', '["a"]\n["b"]\n', { format: 'ndjson' }, /an object such as/],
    [
      'an empty column',
      'user_id,customer_id\n,a\n,b\n',
      {},
      /empty in every record.*map=customer_id=user_id/,
    ],
    [
      'a wrong header',
      'user_id\na,1\nb,2\n',
      {},
      /1 columns.*first line is not the header.*options header and delimiter/,
    ],
    [
      'another encoding',
      Buffer.from('user_id\nJos\xe9\n', 'latin1'),
      { source: { encoding: 'utf-8' } },
      /not in UTF-8.*encoding=windows-1252/,
    ],
    ['something else', `user_id\n${'x'.repeat(300)}\n`, {}, /The only record.*id_too_long.*in line 2/],
  ])(
    'a load whose records were all refused fails with the likely reason: %s',
    async (_, content, options, reason) => {
      const { ended } = await fails(content as string, options as FileOptions);
      expect(ended).toMatchObject({ status: 'failed', failure: { code: 'all_records_refused' } });
      expect(ended.failure?.message).toMatch(reason);
      expect(ended.tally.rejected).toBe(ended.totalRows);
    },
  );

  test('a dry run fails too if all records are refused, even if max_errors allows all, and one good record completes a load', async () => {
    for (const options of [{ dryRun: true }, { maxErrors: { percent: 100 } }, { chunkBytes: 1 }]) {
      const { ended } = await fails('user_id,a\n,1\n,2\n', options);
      expect(ended.failure?.code, JSON.stringify(options)).toBe('all_records_refused');
    }
    expect((await loadIntoEmpty('user_id,a\n,1\n,2\nu,3\n')).ended).toMatchObject({ status: 'completed' });
  });

  test('a load whose records were all refused is not retried, and the lane continues', async () => {
    const { environmentId, manual } = await fails('user_id,a\n,1\n');
    const again = retryLoad(withoutQueue(t.system), environmentId, manual.jobId);
    expect(await refusal(again)).toBe('job_not_retryable');
    expect(await load(environmentId, 'user_id\nu\n')).toMatchObject({ status: 'completed' });
  });
});

describe('a load whose first 100 000 records are refused', () => {
  const refused = '1\n'.repeat(MAX_REFUSED_AT_FIRST);
  const users = lines({ user_id: 'a' }, { user_id: 'b' });
  const chunks = { format: 'ndjson', chunkBytes: refused.length / 2 } as const;

  async function begins(options: FileOptions = {}, content = refused + users) {
    const environmentId = await newEnvironment(t.system);
    const manual = await startManually(t.system, environmentId, content, { ...chunks, ...options });
    await manual.begin();
    await manual.chunk(0);
    expect((await manual.look()).status).toBe('processing');
    await manual.chunk(1);
    return { environmentId, manual, ended: await manual.look() };
  }

  // proves: all-refused
  test('a load whose first 100 000 records are refused fails without reading on, keeps its rejects, and reads on when it is retried', async () => {
    // A refused record that fills the third chunk.
    const more = `"${'x'.repeat(chunks.chunkBytes)}"\n`;
    const { environmentId, manual, ended } = await begins({}, refused + more + users);
    expect(ended).toMatchObject({
      status: 'failed',
      failure: { code: 'first_records_refused' },
      totalRows: MAX_REFUSED_AT_FIRST + 3,
      tally: { read: MAX_REFUSED_AT_FIRST, rejected: MAX_REFUSED_AT_FIRST },
    });
    expect(ended.failure?.message).toMatch(
      /^The first 100000 records were all refused, and the other 3 not read \(not_an_object\)\. Each line must be .*\. To load the others all the same, retry the job \(0 rows had been applied\)$/,
    );
    const { rejects } = await listRejects(t.system, environmentId, manual.jobId, { limit: 2, after: 0 });
    expect(rejects.map(({ row }) => row)).toEqual([1, 2]);
    expect(await load(environmentId, lines({ user_id: 'c' }))).toMatchObject({ status: 'completed' });

    await retryLoad(withoutQueue(t.system), environmentId, manual.jobId);
    for (const chunk of [2, 3]) await manual.chunk(chunk);
    expect(await manual.finish()).toMatchObject({
      status: 'completed',
      tally: { rejected: MAX_REFUSED_AT_FIRST + 1, inserted: 2 },
    });
    expect(Object.keys((await readProfiles(t.system, environmentId)).users)).toEqual(['a', 'b', 'c']);
  });

  // proves: all-refused
  test('a plan whose first 100 000 records are refused fails without reading on', async () => {
    const { ended } = await begins({ plan: true, dryRun: true });
    expect(ended).toMatchObject({
      status: 'failed',
      failure: { code: 'first_records_refused' },
      tally: { read: MAX_REFUSED_AT_FIRST, rejected: MAX_REFUSED_AT_FIRST },
    });
  });

  test('a load continues if a record before the refused ones was accepted, or if max_errors allows them', async () => {
    expect((await begins({}, users + refused)).ended.status).toBe('processing');
    const allowed = await begins({ maxErrors: { count: MAX_REFUSED_AT_FIRST } });
    expect(allowed.ended.status).toBe('processing');
  });
});

describe('the balance', () => {
  test('the tables refuse a completed load or chunk whose counts do not add up', async () => {
    const { ended } = await loadIntoEmpty('user_id\nu\nv\n\n,\n');
    expect(ended.tally.read).toBe(ended.tally.inserted + ended.tally.rejected);
    const { db } = t.system;
    const counts = db.updateTable('loads').set({ rows_inserted: 1 }).where('job_id', '=', ended.jobId);
    await expect(counts.execute()).rejects.toMatchObject({ constraint: 'loads_completed_balances' });
    const chunks = db
      .updateTable('load_chunks')
      .set({ rows_inserted: 1 })
      .where('load_id', '=', ({ selectFrom }) =>
        selectFrom('loads').select('load_id').where('job_id', '=', ended.jobId),
      );
    await expect(chunks.execute()).rejects.toMatchObject({ constraint: 'load_chunks_done_balances' });
  });
});

describe('loading again', () => {
  test('the same bytes name the job that they repeat, and rewrite no row', async () => {
    const environmentId = await newEnvironment(t.system);
    const content = 'user_id,company_id,a\nu,c,1\nv,c,2\n';
    const first = await load(environmentId, content);
    expect(first.duplicateOf).toBeNull();
    const before = await readVersions(t.system, environmentId);
    const second = await load(environmentId, content);
    expect(second.duplicateOf).toBe(first.jobId);
    expect(second.sha256).toBe(first.sha256);
    expect(second.tally).toMatchObject({ read: 2, unchanged: 2 });
    expect(await readVersions(t.system, environmentId)).toEqual(before);
  });

  test('a file that differs in one row writes that row only', async () => {
    const environmentId = await newEnvironment(t.system);
    const rows = (changed: string) => `user_id,a\nu1,1\nu2,${changed}\nu3,3\n`;
    await load(environmentId, rows('2'));
    const before = await readVersions(t.system, environmentId);
    const { tally } = await load(environmentId, rows('9'));
    expect(tally).toMatchObject({ updated: 1, unchanged: 2 });
    const after = await readVersions(t.system, environmentId);
    expect(Object.keys(after).filter((key) => after[key] !== before[key])).toEqual(['users/u2']);
  });

  // proves: idempotent-import
  test('a file that is sent again during its load is skipped or refused', async () => {
    const environmentId = await newEnvironment(t.system);
    const quiet = withoutQueue(t.system);
    const content = 'user_id,a\nu,1\n';
    const skip = { ifDuplicate: 'skip' } as const;
    const atOnce = await Promise.all(
      Array.from({ length: 4 }, () => acceptFile(quiet, environmentId, content, skip)),
    );
    expect(new Set(atOnce).size).toBe(1);
    const refused = acceptFile(quiet, environmentId, content, { ifDuplicate: 'reject' });
    expect(await refusal(refused)).toBe('duplicate_file');
    const dry = await acceptFile(quiet, environmentId, 'user_id,a\nv,1\n', { dryRun: true });
    expect(await acceptFile(quiet, environmentId, 'user_id,a\nv,1\n', skip)).not.toBe(dry);
  });

  // proves: idempotent-import
  test('the same bytes read in another way are not a duplicate, and in the same way they are', async () => {
    const environmentId = await newEnvironment(t.system);
    const content = 'user_id,a\nu,1\n';
    const first = await load(environmentId, content, { map: { a: 'b' }, source: { encoding: 'utf-8' } });
    const skip = { ifDuplicate: 'skip' } as const;
    const same = { ...skip, map: { ' a ': 'b' }, source: { encoding: 'utf-8' } };
    expect(await acceptFile(t.system, environmentId, content, same)).toBe(first.jobId);
    const otherMap = await load(environmentId, content, { ...skip, map: { a: 'c' }, source: same.source });
    const otherSource = await load(environmentId, content, { ...skip, map: { a: 'b' } });
    for (const other of [otherMap, otherSource]) {
      expect(other.jobId).not.toBe(first.jobId);
      expect(other.duplicateOf).toBeNull();
    }
  });

  test('a dry run writes nothing, and is not a load that a file could repeat', async () => {
    const environmentId = await newEnvironment(t.system);
    const content = 'user_id,a\nu,1\nbad\n';
    const dry = await load(environmentId, content, { dryRun: true });
    expect(dry.tally).toMatchObject({ inserted: 1, rejected: 1 });
    expect(dry.dryRun).toBe(true);
    expect(await readProfiles(t.system, environmentId)).toEqual({ users: {}, companies: {} });
    expect((await listRejects(t.system, environmentId, dry.jobId, { limit: 9, after: 0 })).total).toBe(1);
    expect((await load(environmentId, content)).duplicateOf).toBeNull();
  });
});

describe('lanes', () => {
  // proves: load-order
  test('loads of an environment run one after another in the order of acceptance, of users and of companies', async () => {
    const environmentId = await newEnvironment(t.system);
    const quiet = withoutQueue(t.system);
    const first = await startManually(t.system, environmentId, 'user_id,a\nu,1\n');
    const second = await startManually(t.system, environmentId, 'company_id,a\nc,1\n');
    const third = await startManually(t.system, environmentId, 'user_id,a\nu,3\n');
    expect((await second.look()).queuePosition).toBe(1);
    expect((await third.look()).queuePosition).toBe(2);
    await third.chunk(0);
    await second.chunk(0);
    expect(await readProfiles(t.system, environmentId)).toEqual({ users: {}, companies: {} });
    await runManually(first);
    expect((await second.look()).status).toBe('processing');
    expect((await third.look()).status).toBe('queued');
    await runManually(second);
    await runManually(third);
    expect((await third.look()).status).toBe('completed');
    await startLane(quiet, environmentId);
    expect((await readProfiles(t.system, environmentId)).users['u']?.metadata).toEqual({ a: '3' });
  });

  test('a load of another environment does not wait', async () => {
    const busy = await newEnvironment(t.system);
    await startManually(t.system, busy, 'user_id,a\nu,1\n');
    const { ended, users } = await loadIntoEmpty('user_id,a\nu,2\n');
    expect(ended.status).toBe('completed');
    expect(users['u']?.metadata).toEqual({ a: '2' });
    expect((await readProfiles(t.system, busy)).users).toEqual({});
  });
});

describe('cancel and retry', () => {
  const content = 'user_id,a\nu1,1\nu2,2\nu3,3\n';

  test('a queued load that is cancelled never runs, and the lane continues', async () => {
    const environmentId = await newEnvironment(t.system);
    const first = await startManually(t.system, environmentId, content, { chunkBytes: 1 });
    const second = await startManually(t.system, environmentId, 'user_id\nv\n');
    await cancelLoad(withoutQueue(t.system), environmentId, second.jobId);
    expect((await second.look()).status).toBe('cancelled');
    await runManually(first);
    expect((await runManually(second)).status).toBe('cancelled');
    expect(Object.keys((await readProfiles(t.system, environmentId)).users)).toEqual(['u1', 'u2', 'u3']);
  });

  // proves: load-order
  test('a running load that is cancelled keeps its applied rows, starts the next, and continues behind all others when retried', async () => {
    const environmentId = await newEnvironment(t.system);
    const manual = await startManually(t.system, environmentId, content, { chunkBytes: 1 });
    const next = await startManually(t.system, environmentId, 'user_id\nv\n');
    const last = await startManually(t.system, environmentId, 'user_id\nw\n');
    await manual.chunk(1);
    await cancelLoad(withoutQueue(t.system), environmentId, manual.jobId);
    expect((await manual.look()).tally).toMatchObject({ read: 1, inserted: 1 });
    expect((await next.look()).status).toBe('processing');
    await retryLoad(withoutQueue(t.system), environmentId, manual.jobId);
    await runManually(next);
    expect((await manual.look()).status, 'behind those accepted since').toBe('queued');
    await runManually(last);
    const versions = await readVersions(t.system, environmentId);
    const ended = await runManually(manual);
    expect(ended.status).toBe('completed');
    expect(ended.attempts).toBe(2);
    expect(ended.rowsBefore, 'what the rate leaves out').toBe(1);
    expect(ended.tally).toMatchObject({ read: 3, inserted: 3 });
    expect((await readVersions(t.system, environmentId))['users/u2'], 'not done again').toBe(
      versions['users/u2'],
    );
  });

  test('an ended load cannot be cancelled, a running or completed one cannot be retried, and others are not found', async () => {
    const environmentId = await newEnvironment(t.system);
    const manual = await startManually(t.system, environmentId, content);
    const quiet = withoutQueue(t.system);
    expect(await refusal(retryLoad(quiet, environmentId, manual.jobId))).toBe('job_not_retryable');
    await runManually(manual);
    expect(await refusal(cancelLoad(quiet, environmentId, manual.jobId))).toBe('job_not_cancellable');
    expect(await refusal(retryLoad(quiet, environmentId, manual.jobId))).toBe('job_not_retryable');
    const other = await newEnvironment(t.system);
    expect(await refusal(cancelLoad(quiet, other, manual.jobId))).toBe('not_found');
    expect(await refusal(retryLoad(quiet, other, manual.jobId))).toBe('not_found');
  });

  test('a load whose file has expired cannot be retried, and a running one keeps its file', async () => {
    const environmentId = await newEnvironment(t.system);
    const quiet = withoutQueue(t.system);
    const cancelled = await startManually(t.system, environmentId, content);
    await cancelLoad(quiet, environmentId, cancelled.jobId);
    const running = await startManually(t.system, environmentId, content);
    await pruneFiles(quiet, { fileDays: 0, jobDays: 365 });
    expect(await refusal(retryLoad(quiet, environmentId, cancelled.jobId))).toBe('job_expired');
    expect((await runManually(running)).status).toBe('completed');
    await pruneFiles(quiet, { fileDays: 0, jobDays: 0 });
    expect(await refusal(retryLoad(quiet, environmentId, cancelled.jobId))).toBe('not_found');
  });
});
