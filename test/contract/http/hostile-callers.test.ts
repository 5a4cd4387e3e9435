import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import {
  ANSWER_PIECE_BYTES,
  addSlowReaderLimits,
  MAX_HELD_BYTES,
} from '../../../src/http/plugins/slow-readers.ts';
import { collectLog } from '../../support/servers/collected-log.ts';
import {
  type ErrorBody,
  openServer,
  RawConnection,
  serve,
  serversPerTest,
} from '../../support/servers/http.ts';
import { openTestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const MiB = 1024 * 1024;
const { start, cleanups } = serversPerTest();
const { t: system, server } = await openServer();

const list = '/v1/background_jobs';

describe('answers that are not read', () => {
  const lateBytes = 8 * MiB;

  /**
   * Starts a server with responses of several sizes. The server waits at most `stallMs` for a
   * client that does not read its response.
   */
  async function startAnswering(stallMs: number) {
    const app = Fastify();
    cleanups.push(() => app.close());
    addSlowReaderLimits(app, stallMs);
    app.get('/large', { config: { answerBytes: MiB } }, () => 'x'.repeat(MiB));
    app.get('/unforeseen', () => 'x'.repeat(40 * MiB));
    app.get('/endless', { config: { answerBytes: MiB } }, async (_request, reply) =>
      reply.send(Readable.from(endless(), { objectMode: false })),
    );
    const late = { requests: 0, answers: 0, make: () => undefined as unknown };
    const answerIsMade = new Promise((resolve) => {
      late.make = () => resolve(null);
    });
    app.addHook('onSend', async ({ method }) => {
      if (method === 'POST') late.answers++;
    });
    app.post('/late', async () => {
      late.requests++;
      await answerIsMade;
      return 'x'.repeat(lateBytes);
    });
    const address = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const unread = async (path: string, times = 1) => {
      const connection = await RawConnection.open(address);
      cleanups.push(() => connection.socket.destroy());
      connection.socket.pause();
      await connection.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(times));
      return connection;
    };
    const open = () => new Promise<number>((resolve) => app.server.getConnections((_, n) => resolve(n)));
    return { address, unread, open, late };
  }

  async function* endless() {
    while (true) yield Buffer.alloc(ANSWER_PIECE_BYTES);
  }

  // proves: slow-reader
  test('one connection has at most four megabytes of unread answers, and its further requests are 429', async () => {
    const { unread } = await startAnswering(60_000);
    const connection = await unread('/large', 12);
    connection.socket.resume();
    await waitFor('all answers', () => connection.received.split('HTTP/1.1 ').length === 13);
    expect(connection.received.match(/HTTP\/1.1 200/g)).toHaveLength(4);
    expect(connection.received.match(/HTTP\/1.1 429/g)).toHaveLength(8);
  });

  // proves: slow-reader
  test('one environment has at most sixteen megabytes of unread answers, and room again when their connections end', async () => {
    const { address, unread } = await startAnswering(60_000);
    const path = '/endless';
    const statusOf = async () => {
      const answer = await fetch(new URL(path, address));
      await answer.body?.cancel();
      return answer.status;
    };
    const connections = await Promise.all(Array.from({ length: 4 }, () => unread(path, 4)));
    await waitFor('a refusal', async () => (await statusOf()) === 429);
    // These requests have no keys. Without a key, the limit counts each route as an environment.
    expect((await fetch(new URL('/large', address))).status).toBe(200);
    for (const { socket } of connections) socket.destroy();
    await waitFor('answers to be made again', async () => (await statusOf()) === 200);
  });

  test.each(['/unforeseen', '/endless'])(
    'a connection that does not read its answer from %s is cut',
    async (path) => {
      const { unread, open } = await startAnswering(400);
      await unread(path);
      await waitFor('the connection', async () => (await open()) === 1);
      await waitFor('the connection to be cut', async () => (await open()) === 0);
    },
  );

  // proves: leaving-client
  test('answers are not kept for clients that left before they were made', async () => {
    const { address, open, late } = await startAnswering(60_000);
    const posts = MAX_HELD_BYTES / lateBytes;
    const connections = await Promise.all(Array.from({ length: posts }, () => RawConnection.open(address)));
    for (const each of connections) each.head('POST /late HTTP/1.1', 'host: x');
    await waitFor('all to be asked for', () => late.requests === posts);
    for (const each of connections) each.reset();
    await waitFor('all to have left', async () => (await open()) === 0);
    late.make();
    await waitFor('all to be made', () => late.answers === posts);
    expect((await fetch(new URL('/large', address))).status).toBe(200);
  });

  test('an answer is not cut while it is read, however long that takes', async () => {
    const { address } = await startAnswering(400);
    const before = performance.now();
    const { body } = await fetch(new URL('/endless', address));
    for await (const _piece of body ?? []) if (performance.now() - before > 1_500) break;
    expect(performance.now() - before).toBeGreaterThan(1_500);
  });
});

/** Returns an id with the form of a key's public id. No key has this id. */
const unknownId = (n: number) => String(n).padStart(12, '0');

describe('two hundred connections that ask with unknown keys, without end', () => {
  // proves: bad-keys
  test('two hundred endless senders of unknown keys do not keep good keys from lists and records', async () => {
    const other = await system.addEnvironment('other');
    const request = (n: number) =>
      `GET ${list} HTTP/1.1\r\nhost: x\r\nauthorization: Token slk_${unknownId(n)}_${'a'.repeat(40)}\r\n\r\n`;
    const strangers = await Promise.all(Array.from({ length: 200 }, () => server.connect()));
    cleanups.push(() => {
      for (const { socket } of strangers) socket.destroy();
    });
    const asking = strangers.map(({ socket }, n) => {
      let refused = 0;
      socket.on('data', (bytes) => {
        refused += bytes.toString('latin1').split('HTTP/1.1 401').length - 1;
        socket.write(request(n));
      });
      socket.write(request(n));
      return () => refused;
    });
    await waitFor('the first to be refused', () => asking.some((refused) => refused() > 0));
    for (let round = 0; round < 6; round++) {
      const answers = await Promise.all(
        Array.from({ length: 3 }, () =>
          server.fetch(list, { key: round % 2 === 0 ? other.key : system.key }),
        ),
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    const json = { 'content-type': 'application/json' };
    const record = { method: 'POST', headers: json, body: '{"user_id":"u1","event_name":"x"}' };
    expect((await server.fetch('/v1/track', record)).status).toBe(202);
    await waitFor('all to be refused', () => asking.every((refused) => refused() > 0));
  });
});

describe('a list that takes too long', () => {
  test('a list that takes too long is 503 with the reason, and records are stored meanwhile', async () => {
    const { pool } = system.system;
    const lock = await pool.connect();
    await lock.query('begin; lock table sluice.exports in access exclusive mode');
    try {
      const before = performance.now();
      const lists = Promise.all(Array.from({ length: 4 }, () => server.json<ErrorBody>(list)));
      const type = { 'content-type': 'application/json' };
      const track = { method: 'POST', headers: type, body: '{"user_id":"u1","event_name":"x"}' };
      expect((await server.fetch('/v1/track', track)).status).toBe(202);
      expect(performance.now() - before).toBeLessThan(4_000);
      for (const { status, headers } of await lists) {
        expect(status).toBe(503);
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      }
      // Only a few connections are reserved for lists. A list that got a connection fails because
      // its query took too long. A list that waited for a connection in vain gives another reason.
      const reasons = (await lists).map(({ body }) => body.errors[0]?.message);
      expect(reasons).toContainEqual(expect.stringMatching(/took too long/));
    } finally {
      await lock.query('rollback');
      lock.release();
    }
    expect((await server.fetch(list)).status).toBe(200);
  });
});

describe('a flood of jobs', () => {
  const upload = { method: 'POST', body: 'user_id\nu1\n', headers: { 'content-type': 'text/csv' } };
  const post = (body: string, key?: string) => ({
    body,
    headers: { 'content-type': 'application/json', ...(key !== undefined && { 'idempotency-key': key }) },
  });

  test('jobs of every kind beyond MAX_QUEUED_JOBS are refused, and repeated requests get their first answers', async () => {
    const { system, server } = await start({ settings: { MAX_QUEUED_JOBS: '3' } });
    const first = { ...upload, headers: { ...upload.headers, 'idempotency-key': 'once' } };
    const { body: job } = await server.json<{ job_id: string }>('/v1/imports', first);
    const exporting = { method: 'POST', ...post('{}', 'export') };
    const deleting = { method: 'DELETE', ...post('{"users":["u1"]}', 'deletion') };
    const { body: exportJob } = await server.json<{ job_id: string }>('/api/v1/analytics/exports', exporting);
    const deletion = await server.json<{ job_id: string }>('/v1/users', deleting);
    expect(deletion.status).toBe(202);
    const requests = [
      ['/v1/imports', upload],
      ['/api/v1/analytics/exports', { method: 'POST', ...post('{}') }],
      ['/v1/users', { method: 'DELETE', ...post('{"users":["u2"]}') }],
    ] as const;
    for (const [path, request] of requests) {
      const { status, body, headers } = await server.json<ErrorBody>(path, request);
      expect([path, status, body.errors[0]?.error_code]).toEqual([path, 429, 'rate_limited']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    expect(await server.json('/v1/imports', first)).toMatchObject({
      status: 200,
      body: { job_id: job.job_id },
    });
    expect(await server.json('/api/v1/analytics/exports', exporting)).toMatchObject({
      body: { job_id: exportJob.job_id },
    });
    expect(await server.json('/v1/users', deleting)).toMatchObject({
      body: { job_id: deletion.body.job_id },
    });
    // The jobs of another environment are counted separately.
    const other = await system.addEnvironment('other');
    expect((await server.fetch('/v1/imports', { ...upload, key: other.key })).status).toBe(200);
    system.startWorker();
    await system.ended(job.job_id);
    await waitFor('room', async () => (await server.fetch('/v1/imports', upload)).status === 200);
  });
});

test('twenty refusals of each kind are logged, and the others are counted', async () => {
  const { log, lines } = collectLog();
  const system = await openTestSystem({ log });
  cleanups.push(() => system.close());
  const server = await serve(system);
  for (let n = 0; n < 60; n++) await server.fetch('/nowhere');
  expect((await server.fetch(list, { key: null })).status).toBe(401);
  await server.stop();
  const refused = lines.filter(({ msg }) => msg === 'request refused');
  expect(refused.filter((line) => line['error_code'] === 'route_not_found')).toHaveLength(20);
  expect(refused.filter((line) => line['error_code'] === 'invalid_api_key')).toHaveLength(1);
  const counts = lines.filter(({ msg }) => msg === 'requests refused: more than are logged');
  expect(counts.map((line) => line['suppressed'])).toEqual([40]);
});

describe('a connection that is reset', () => {
  const gzipForm = Buffer.concat([
    Buffer.from('--b\r\ncontent-disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'),
    Buffer.from('user_id\nu1\n'.repeat(10_000)),
  ]);

  // proves: reset-connection
  test('a connection that is reset in any phase of a request or its answer ends nothing else', async () => {
    const uncaught: unknown[] = [];
    const note = (error: unknown) => void uncaught.push(error);
    process.on('uncaughtExceptionMonitor', note);
    cleanups.push(() => process.off('uncaughtExceptionMonitor', note));
    const key = `authorization: Token ${system.key}`;
    const json = 'content-type: application/json';
    /**
     * Requests that a client aborts. The client resets the connection as soon as it has received
     * `until`, or immediately if `until` is missing.
     */
    const phases: readonly { head: readonly string[]; body?: string | Uint8Array; until?: RegExp }[] = [
      { head: ['GET /v1/background_jobs HTTP/1.1\r\nhost'] },
      { head: ['NONSENSE'], until: /^HTTP\/1.1 400/ },
      { head: ['GET /v1/background_jobs HTTP/1.1', 'host: x', key] },
      {
        head: ['GET /v1/background_jobs HTTP/1.1', 'host: x', 'authorization: Token slk_no'],
        until: / 401 /,
      },
      { head: ['GET /openapi.json HTTP/1.1', 'host: x'], until: / 200 / },
      { head: ['POST /v1/track HTTP/1.1', 'host: x', key, json, 'content-length: 90'], body: '{"user_id":' },
      {
        head: ['POST /v1/imports HTTP/1.1', 'host: x', 'content-type: text/csv', 'content-length: 99999999'],
        body: 'x'.repeat(MiB),
        until: / 401 /,
      },
      {
        head: [
          'POST /v1/imports HTTP/1.1',
          'host: x',
          key,
          'content-type: text/csv',
          'content-length: 9999999',
        ],
        body: 'user_id\nu1\n',
      },
      {
        head: [
          'POST /v1/imports HTTP/1.1',
          ...['host: x', key, 'content-type: multipart/form-data; boundary=b', 'content-encoding: gzip'],
          'content-length: 9999999',
        ],
        body: gzipSync(gzipForm).subarray(0, -20),
      },
      {
        head: ['POST /v1/imports HTTP/1.1', 'host: x', key, 'expect: 100-continue', 'content-length: 9'],
        until: / 100 | 415 /,
      },
      { head: ['GET / HTTP/1.1', 'host: x', 'connection: upgrade', 'upgrade: websocket'], until: /HTTP/ },
      { head: ['CONNECT x:1 HTTP/1.1', 'host: x:1'] },
    ];
    for (const { head, body, until } of [...phases, ...phases]) {
      const connection = await server.connect();
      connection.head(...head);
      if (body !== undefined) await connection.write(body);
      if (until !== undefined) await connection.until(until);
      connection.reset();
      expect((await server.fetch('/health/live')).status).toBe(200);
    }
    expect(uncaught).toEqual([]);
  });
});
