import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createClient, postPipelined } from '../../../examples/demo/client.ts';

/** The server answers every third request with status 503. */
async function startBusyServer(answer: (body: string) => string) {
  const accepted: string[] = [];
  let requests = 0;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const bytes of request) body += String(bytes);
    if (++requests % 3 === 1) {
      response.writeHead(503, { 'retry-after': '0', 'content-length': 13 }).end('{"errors":[]}');
      return;
    }
    accepted.push(body);
    response.writeHead(202, { 'content-length': answer(body).length }).end(answer(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, accepted, stop: () => server.close() };
}

const { signal } = new AbortController();

test('pipelined requests that a busy server defers are sent again and accepted once', async () => {
  const server = await startBusyServer(() => '');
  const counts: number[] = [];
  await postPipelined({
    url: server.url,
    path: '/v1/track',
    key: 'k',
    count: 500,
    signal,
    body: (n) => String(n),
    onAnswered: (count) => counts.push(count),
  }).finally(server.stop);
  expect(server.accepted.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, n) => n));
  expect(counts.at(-1)).toBe(500);
});

test('a single deferred request is sent again, and a stopped server is an error', async () => {
  const server = await startBusyServer((body) => body);
  const client = createClient(server.url, 'k', signal);
  expect(await client.post('/v1/users/bulk_identify', { a: 1 })).toEqual({ a: 1 });
  server.stop();
  await expect(client.post('/v1/users/bulk_identify', {})).rejects.toThrow();
});
