import { describe, expect, test } from 'vitest';
import { type ErrorBody, serversPerTest } from '../../support/servers/http.ts';
import type { TestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const { start } = serversPerTest();

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
  test('a server that stops finishes the upload in flight, and accepts no more', async () => {
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

  test('a server that stops cuts uploads at its deadline, and leaves no file of them', async () => {
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

test('an answer reveals nothing internal when the service fails', async () => {
  const { system, server } = await start();
  await system.system.pool.query('alter view background_jobs rename to gone');
  const { status, body } = await server.json<ErrorBody>('/v1/background_jobs');
  expect([status, body.errors[0]?.error_code]).toEqual([500, 'internal_error']);
  expect(JSON.stringify(body)).not.toMatch(/background_jobs|loads|relation|42P01|select/i);
});
