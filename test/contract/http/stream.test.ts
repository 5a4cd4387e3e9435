import { hostname } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import { MAX_LIVE_UNREAD_BYTES } from '../../../src/domain/limits.ts';
import { createApiKey, revokeApiKey } from '../../../src/postgres/stores/api-keys.ts';
import { EventStream, type StreamData } from '../../support/event-stream.ts';
import { type ErrorBody, form, openServer, serve } from '../../support/http.ts';
import { openTestSystem, type Tenant } from '../../support/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const streams: EventStream[] = [];
const { t, server } = await openServer({ settings: { CHUNK_BYTES: '64k' } });
afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
});

async function watch(tenant: Tenant, topics: string) {
  const stream = await EventStream.open(server.address, topics, { key: tenant.key });
  streams.push(stream);
  return stream;
}

async function load({ key }: Tenant, rows = 3): Promise<string> {
  const file = `user_id,name\n${Array.from({ length: rows }, (_, row) => `u${row},n${row}\n`).join('')},none\n`;
  const { body } = await server.json<{ job_id: string }>('/v1/imports', {
    method: 'POST',
    key,
    body: form(file),
  });
  return body.job_id;
}

async function withWorker(work: () => Promise<unknown>): Promise<void> {
  const worker = t.startWorker();
  try {
    await work();
  } finally {
    await worker.stop();
  }
}

const isSnapshot = ({ snapshot }: StreamData) => snapshot === true;
const jobIn = ({ jobs = [] }: StreamData, id: string) => jobs.find(({ job_id }) => job_id === id);

/** Looks into the ledger on the connections that live views use, and asks of keys, while `work` runs. */
async function countQueries(work: () => Promise<void>): Promise<number> {
  let count = 0;
  const counted = () => {
    count++;
  };
  const pools = [t.system.reader.pool, t.system.pool];
  for (const pool of pools) pool.on('acquire', counted);
  await work();
  for (const pool of pools) pool.off('acquire', counted);
  return count;
}

/** What is counted needs time to happen, and there is nothing to wait for: it is about what does not. */
const seconds = (count: number) => new Promise<void>((resolve) => setTimeout(resolve, count * 1_000));

describe('a stream', () => {
  test.each(['', 'jobs,people', 'job:1'])('about topics that are none is refused: %s', async (topics) => {
    const { status, body } = await server.json<ErrorBody>(`/v1/stream?topics=${topics}`);
    expect([status, body.errors.map(({ details }) => details)]).toEqual([400, ['topics']]);
  });

  // proves: live-truth
  test('of jobs begins with everything, then says what changes, and ends where the ledger does', async () => {
    const tenant = await t.addEnvironment('jobs');
    const stranger = await t.addEnvironment('stranger');
    const first = await load(tenant);
    const [hidden] = [await load(stranger), await load(stranger)];
    const stream = await watch(tenant, 'jobs,pulse');
    const { data } = await stream.until('jobs', isSnapshot);
    expect(data.jobs?.map(({ job_id }) => job_id)).toEqual([first]);
    expect((await stream.until('pulse', isSnapshot)).data.queued).toBe(0);
    const second = await load(tenant);
    await stream.until('jobs', (each) => each.snapshot === false && jobIn(each, second) !== undefined);
    await withWorker(() =>
      Promise.all(
        [first, second].map((id) => stream.until('jobs', (each) => jobIn(each, id)?.status === 'completed')),
      ),
    );
    const [ended] = stream.events.flatMap(({ data }) => jobIn(data, first) ?? []).slice(-1);
    expect(ended?.counts).toEqual({
      read: 4,
      inserted: 3,
      updated: 0,
      unchanged: 0,
      removed: 0,
      superseded: 0,
      rejected: 1,
      amended: 0,
    });
    await stream.until(
      'pulse',
      ({ snapshot, queued, running }) => snapshot === false && queued === 0 && running?.length === 0,
    );
    expect(JSON.stringify(stream.events)).not.toContain(hidden);
  });

  // proves: live-truth
  test('of a job says of each chunk who does it, and what came of it', async () => {
    const tenant = await t.addEnvironment('chunks');
    const jobId = await load(tenant, 20_000);
    const stream = await watch(tenant, `job:${jobId.toUpperCase()}`);
    const { data } = await stream.until('job', isSnapshot);
    expect(data.chunks?.length).toBeGreaterThan(2);
    await withWorker(() => stream.until('job', ({ job }) => job?.status === 'completed'));
    const chunks = new Map(
      stream.events.flatMap((each) => each.data.chunks ?? []).map((each) => [each['chunk'], each]),
    );
    await waitFor('all chunks', () => chunks.size === data.chunks?.length);
    const done = [...chunks.values()];
    expect(done.reduce((rows, chunk) => rows + Number(chunk['rows']), 0)).toBe(20_001);
    for (const chunk of done) {
      expect(chunk).toMatchObject({ state: 'done', attempt: 1, ms: expect.any(Number), last_error: null });
      expect(chunk['worker']).toMatch(new RegExp(` ${process.pid}$`));
    }
  });

  test('of a job of another environment has none', async () => {
    const tenant = await t.addEnvironment('curious');
    const stream = await watch(tenant, `job:${await load(t)}`);
    const { data } = await stream.until('job', isSnapshot);
    expect(data).toMatchObject({ job: null, chunks: [] });
  });

  // proves: live-truth
  test('of a reader that does not read leaves out what comes, says how much, and then sends everything', async () => {
    const tenant = await t.addEnvironment('slow');
    const sent: string[] = [];
    let unread = 0;
    const close = t.system.live.open(
      {
        environmentId: tenant.environment.environmentId,
        keyId: (await createApiKey(t.system.db, tenant.environment.environmentId, { label: 'slow' })).keyId,
        topics: [{ kind: 'jobs' }],
      },
      { write: (bytes) => sent.push(bytes.toString()), unread: () => unread, end: () => undefined },
    );
    await waitFor('the beginning', () => sent.some((each) => each.includes('event: ready')));
    unread = MAX_LIVE_UNREAD_BYTES;
    const before = sent.length;
    const witness = await watch(tenant, 'jobs');
    await witness.until('ready');
    const jobId = await load(tenant);
    await witness.until('jobs', (each) => jobIn(each, jobId) !== undefined);
    const another = await load(tenant);
    await witness.until('jobs', (each) => jobIn(each, another) !== undefined);
    expect(sent.length).toBe(before);
    unread = 0;
    await waitFor('everything', () => sent.slice(before).some((each) => each.includes('"snapshot":true')));
    expect(sent[before]).toMatch(/^event: missed\ndata: \{"events":2\}\n\n$/);
    const [everything = ''] = sent.slice(before).filter((each) => each.includes('"snapshot":true'));
    for (const id of [jobId, another]) expect(everything).toContain(id);
    close();
  });

  // proves: live-truth
  test('ends with its key', async () => {
    const { db } = t.system;
    const { environmentId } = t.environment;
    const { key, keyId } = await createApiKey(db, environmentId, { label: 'x', scopes: ['read'] });
    const stream = await watch({ ...t, key }, 'jobs');
    await stream.until('ready');
    await revokeApiKey(db, environmentId, keyId);
    expect((await stream.until('end')).data).toEqual({ reason: 'key' });
    await waitFor('the end', () => stream.ended);
  });

  const watchJobs = ({ key }: Tenant) =>
    `GET /v1/stream?topics=jobs HTTP/1.1\r\nhost: x\r\nauthorization: Token ${key}\r\n\r\n`;
  /** A table that nobody may look into until it is let go. */
  async function lock(table: string): Promise<() => Promise<void>> {
    const client = await t.system.pool.connect();
    await client.query(`begin; lock table sluice.${table} in access exclusive mode`);
    return async () => {
      await client.query('rollback');
      client.release();
    };
  }

  // proves: leaving-client
  test('is not kept for those who leave while their key is looked up', async () => {
    const letGo = await lock('api_keys');
    const connections = await Promise.all([1, 2, 3].map(() => server.connect()));
    for (const each of connections) await each.write(watchJobs(t));
    await waitFor('the keys to be looked up', async () => {
      const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return (await t.system.reader.pool.query(waiting)).rowCount === 3;
    });
    for (const each of connections) each.reset();
    // What comes after them is answered after they were seen to leave, and after their keys were found.
    await server.fetch('/health/live', { key: null });
    await letGo();
    expect((await server.fetch('/v1/validate')).status).toBe(200);
    await waitFor('none to be open', () => t.system.live.size === 0);
  });

  // proves: leaving-client
  test('is not kept for who leaves before the answer that comes first on its connection', async () => {
    const letGo = await lock('exports');
    try {
      const connection = await server.connect();
      const list = watchJobs(t).replace('/v1/stream?topics=jobs', '/v1/background_jobs');
      await connection.write(list + watchJobs(t));
      await waitFor('the stream', () => t.system.live.size === 1);
      connection.reset();
      await waitFor('it to be closed', () => t.system.live.size === 0);
    } finally {
      await letGo();
    }
  });

  // proves: live-cost
  test('costs one look at the ledger a second for all of 200, and none when they have left', async () => {
    const tenants = [t, await t.addEnvironment('crowd')];
    const crowd = await Promise.all(
      Array.from({ length: 200 }, (_, nth) => watch(tenants[nth % 2] as Tenant, 'jobs,pulse,records')),
    );
    await Promise.all(crowd.map((stream) => stream.until('ready')));
    const looks = await countQueries(() => seconds(3));
    expect(looks).toBeGreaterThanOrEqual(2);
    expect(looks).toBeLessThanOrEqual(4);
    for (const stream of crowd) stream.close();
    await waitFor('all to be closed', () => t.system.live.size === 0);
    expect(await countQueries(() => seconds(1.5))).toBeLessThanOrEqual(1);
    expect(await countQueries(() => seconds(1.5))).toBe(0);
  });
});

describe('a stream of records', () => {
  const send = (path: string, key: string, body: object) => server.fetch(path, { key, json: body });

  // proves: live-truth
  test('has those that were taken and those that were refused, by whichever route, and says how many there were', async () => {
    const tenant = await t.addEnvironment('records');
    const stream = await watch(tenant, 'records');
    await stream.until('ready');
    await send('/v1/identify', tenant.key, { user_id: 'u1', plan: 'pro' });
    await send('/v1/track', tenant.key, { user_id: 'u1' });
    await send('/v1/batch', tenant.key, [
      { type: 'track', user_id: 'u1', event_name: 'paid' },
      { type: 'nothing' },
    ] as object);
    await send('/v1/companies/identify', tenant.key, { company_id: 'acme' });
    await stream.until('records', ({ arrived }) => arrived === 5);
    const records = stream.events.flatMap(({ data }) => data.records ?? []);
    expect(
      new Set(records.map((each) => [each['route'], each['accepted'], each['error_code']].join(' '))),
    ).toEqual(
      new Set([
        'identify true ',
        'track false missing_field',
        'batch true ',
        'batch false invalid_field',
        'company true ',
      ]),
    );
    for (const each of records) expect(each['ms']).toBeGreaterThan(0);
    expect(records.find(({ route }) => route === 'identify')?.['body']).toBe('{"user_id":"u1","plan":"pro"}');
    expect(stream.events.at(-1)?.data).toMatchObject({
      ...{ arrived: 5, refused: 2, shown: 5 },
      server: `${hostname()} ${process.pid}`,
    });
  });

  // proves: live-truth
  test('leaves out what is too much, refused ones last, and says so', async () => {
    const tenant = await t.addEnvironment('flood');
    const stream = await watch(tenant, 'records');
    await stream.until('ready');
    const items = Array.from({ length: 1_000 }, (_, nth) =>
      nth % 100 === 0 ? { type: 'track' } : { type: 'track', user_id: 'u', event_name: 'e' },
    );
    await send('/v1/batch', tenant.key, items as object);
    const { data } = await stream.until('records', ({ arrived }) => arrived === 1_000);
    expect(data).toMatchObject({ refused: 10, shown: 35 });
    expect(data.records?.filter(({ accepted }) => accepted === false)).toHaveLength(10);
  });

  test('shows nothing of other environments', async () => {
    const [tenant, other] = [await t.addEnvironment('mine'), await t.addEnvironment('theirs')];
    const stream = await watch(tenant, 'records');
    await stream.until('ready');
    await send('/v1/identify', other.key, { user_id: 'secret' });
    await send('/v1/identify', tenant.key, { user_id: 'known' });
    await stream.until('records', ({ arrived }) => arrived === 1);
    expect(JSON.stringify(stream.events)).not.toContain('secret');
  });
});

test('streams end at once when the server stops, and say why', async () => {
  const own = await openTestSystem();
  const stopped = await serve(own);
  const stream = await EventStream.open(stopped.address, 'jobs,records', { key: own.key });
  await stream.until('ready');
  const before = performance.now();
  await stopped.stop();
  expect(performance.now() - before).toBeLessThan(5_000);
  await waitFor('the end', () => stream.ended);
  expect(stream.events.at(-1)).toMatchObject({ event: 'end', data: { reason: 'stopping' } });
  await own.close();
});
