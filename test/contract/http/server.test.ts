import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { type ErrorBody, serve, serversPerTest } from '../../support/http.ts';
import { openTestSystem, type TestSystem } from '../../support/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const { start, cleanups } = serversPerTest();

const csv = 'user_id,name\nu1,Ada\n';
const uploadHead = (t: TestSystem, length: number) =>
  [
    'POST /v1/imports HTTP/1.1',
    'host: x',
    `authorization: Token ${t.key}`,
    'content-type: text/csv',
    `content-length: ${length}`,
  ] as const;

describe('a stop', () => {
  test('finishes the upload in flight, and takes no more', async () => {
    const { system, server } = await start();
    const connection = await server.connect();
    const idle = await server.connect();
    connection.head(...uploadHead(system, csv.length));
    await connection.write(csv.slice(0, 10));
    await waitFor('the upload to be begun', async () => (await system.storedFiles()).length === 1);
    const stopped = server.stop();
    await idle.untilEnded();
    await connection.write(csv.slice(10));
    await connection.until(/^HTTP\/1.1 200 .*connection: close.*"job_id"/is);
    await stopped;
    await expect(fetch(server.address)).rejects.toThrow();
    expect(await system.storedFiles()).toHaveLength(1);
  });

  test('cuts what is still in flight when its time is up, and leaves nothing of it', async () => {
    const { system, server } = await start({ settings: { SHUTDOWN_MS: '1000' } });
    const connection = await server.connect();
    connection.head(...uploadHead(system, 1_000_000));
    await connection.write(csv);
    await waitFor('the upload to be begun', async () => (await system.storedFiles()).length === 1);
    const before = performance.now();
    await server.stop();
    expect(performance.now() - before).toBeLessThan(5_000);
    await connection.untilEnded();
    await waitFor('the file to be gone', async () => (await system.storedFiles()).length === 0);
  });
});

describe('Postgres away', () => {
  /** A database address that can be cut off and come back, in front of the real one. */
  async function proxy(target: URL) {
    const sockets = new Set<import('node:net').Socket>();
    const server = createServer((incoming) => {
      const outgoing = connect(Number(target.port), target.hostname);
      for (const socket of [incoming, outgoing]) {
        sockets.add(socket);
        socket
          .on('error', () => undefined)
          .on('close', () => {
            incoming.destroy();
            outgoing.destroy();
          });
      }
      incoming.pipe(outgoing).pipe(incoming);
    });
    const listen = async (port: number) => {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      return (server.address() as { port: number }).port;
    };
    const port = await listen(0);
    return {
      port,
      back: () => listen(port),
      async cut() {
        server.close();
        for (const socket of sockets) socket.destroy();
        sockets.clear();
        await once(server, 'close');
      },
    };
  }

  test('is 503 with Retry-After, without a word about why, and passes', async () => {
    const system = await openTestSystem();
    const url = new URL(system.databaseUrl);
    const link = await proxy(new URL(system.databaseUrl));
    url.hostname = '127.0.0.1';
    url.port = String(link.port);
    const behind = system.openAnother({ databaseUrl: url.href });
    const server = await serve({ ...system, system: behind });
    cleanups.push(
      () => system.close(),
      () => behind.close(),
      () => link.cut().catch(() => undefined),
      () => server.stop(),
    );
    expect((await server.fetch('/v1/background_jobs')).status).toBe(200);
    await link.cut();
    const { status, body, headers } = await server.json<ErrorBody>('/v1/background_jobs');
    expect([status, body.errors[0]?.error_code]).toEqual([503, 'unavailable']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(JSON.stringify(body)).not.toMatch(/connect|postgres|sql|127\.0/i);
    await link.back();
    await waitFor('the service to be back', async () => (await server.fetch('/v1/background_jobs')).ok);
  });
});

test('an answer says nothing of the inside when the service fails', async () => {
  const { system, server } = await start();
  await system.system.pool.query('alter view background_jobs rename to gone');
  const { status, body } = await server.json<ErrorBody>('/v1/background_jobs');
  expect([status, body.errors[0]?.error_code]).toEqual([500, 'internal_error']);
  expect(JSON.stringify(body)).not.toMatch(/background_jobs|loads|relation|42P01|select/i);
});
