import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { MAX_RECORD_BYTES } from '../../../src/base/limits.ts';
import type { RawConnection } from '../../support/servers/http.ts';
import { bodyOf, openRecordSite, type RecordSite } from '../../support/servers/records.ts';
import { waitFor } from '../../support/wait-for.ts';

const log: { readonly level: number; readonly msg: string; readonly status?: number }[] = [];
const capture = pino({ level: 'debug' }, { write: (line: string) => void log.push(JSON.parse(line)) });

let site: RecordSite;
/** A server that waits only briefly for slow senders. */
let impatient: RecordSite;
beforeAll(async () => {
  site = await openRecordSite({ log: capture, settings: { UPLOAD_STALL_MS: '3600000' } });
  impatient = await openRecordSite({ log: capture, settings: { UPLOAD_STALL_MS: '300' } });
});
afterAll(async () => {
  await site?.close();
  await impatient?.close();
});

const connections: RawConnection[] = [];
afterEach(() => {
  for (const connection of connections.splice(0)) connection.reset();
  // No client may cause the service to log a warning or an error.
  expect(log.splice(0).filter(({ level }) => level >= 40)).toEqual([]);
});

async function connect(to = site): Promise<RawConnection> {
  const connection = await to.server.connect();
  connection.socket.setNoDelay(true);
  connections.push(connection);
  return connection;
}

let serial = 0;
const newId = () => `client-${++serial}`;

const event = (user_id: string) => ({ user_id, event_name: 'x', metadata: { name: 'Ädä' } });
const countEvents = async (userId: string, from = site) => (await from.events(userId)).length;
/** Head of a request. Its body is sent separately. */
const head = (path: string, ...headers: string[]) => [
  `POST ${path} HTTP/1.1`,
  'host: x',
  `authorization: Token ${site.t.key}`,
  'content-type: application/json',
  ...headers,
];
const chunk = (bytes: string | Uint8Array, extension = '') =>
  Buffer.concat([
    Buffer.from(`${Buffer.byteLength(bytes).toString(16)}${extension}\r\n`),
    Buffer.from(bytes),
    Buffer.from('\r\n'),
  ]);
/** Writes one piece. Lets the server, which runs in this process, read it before the next piece. */
async function writeAlone(connection: RawConnection, bytes: string | Uint8Array): Promise<void> {
  await connection.write(bytes);
  await new Promise(setImmediate);
}
const accepted = /^HTTP\/1\.1 202 Accepted\r\n.*\r\n\r\n$/s;

describe('a record', () => {
  test('a record that arrives byte by byte is stored', async () => {
    const id = newId();
    const connection = await connect();
    for (const byte of Buffer.from(site.request('/v1/track', event(id))))
      await writeAlone(connection, Uint8Array.of(byte));
    await connection.until(accepted);
    expect(await countEvents(id)).toBe(1);
  });

  test('a record that arrives in chunks of one byte, or with extensions and trailers, is stored', async () => {
    const bytewise = newId();
    const decorated = newId();
    const connection = await connect();
    connection.head(...head('/v1/track', 'transfer-encoding: chunked'));
    for (const byte of Buffer.from(bodyOf(event(bytewise))))
      await writeAlone(connection, chunk(Uint8Array.of(byte)));
    await connection.write('0\r\n\r\n');
    await connection.until(accepted);
    connection.received = '';
    connection.head(...head('/v1/track', 'transfer-encoding: chunked', 'trailer: x-sum'));
    await connection.write(chunk(bodyOf(event(decorated)), ';name="value"'));
    await connection.write('0\r\nx-sum: 1\r\n\r\n');
    await connection.until(accepted);
    expect([await countEvents(bytewise), await countEvents(decorated)]).toEqual([1, 1]);
  });
});

describe('pipelined requests', () => {
  test('a record behind a refused body in a pipeline is stored', async () => {
    const id = newId();
    const refusals = [
      site.request('/v1/track', '['.repeat(1_000)),
      site.request('/v1/track', event(id)).replace(/Token \S+/, 'Token x'),
      site.request('/v1/identify', { user_id: id, metadata: { a: '\0' } }),
    ];
    for (const refusal of refusals) {
      const connection = await connect();
      await connection.write(refusal + site.request('/v1/track', event(id)));
      await connection.until(/^HTTP\/1\.1 4\d\d .*\}HTTP\/1\.1 202 /s);
    }
    expect(await countEvents(id)).toBe(refusals.length);
  });
});

describe('Expect: 100-continue', () => {
  const expecting = (...headers: string[]) => head('/v1/track', 'expect: 100-continue', ...headers);

  test('a record with Expect: 100-continue is asked for, and then stored', async () => {
    const id = newId();
    const connection = await connect();
    const body = JSON.stringify(event(id));
    connection.head(...expecting(`content-length: ${Buffer.byteLength(body)}`));
    await connection.until(/^HTTP\/1\.1 100 Continue\r\n\r\n$/);
    await connection.write(body);
    await connection.until(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 202 /);
    expect(await countEvents(id)).toBe(1);
  });

  test.each([
    ['401', ['content-length: 100', 'authorization: Token x']],
    ['415', ['content-length: 100', 'content-type: text/csv']],
    ['415', ['content-length: 100', 'content-encoding: br']],
    ['413', [`content-length: ${MAX_RECORD_BYTES + 1}`]],
  ])(
    'a record with Expect: 100-continue is refused with %s before its body is sent, for %j',
    async (status, headers) => {
      const connection = await connect();
      const names = headers.map((header) => header.split(':', 1)[0] ?? '');
      const others = expecting().filter((line) => !names.some((name) => line.startsWith(`${name}:`)));
      connection.head(...others, ...headers);
      await connection.until(/\}$/);
      expect(connection.received.startsWith(`HTTP/1.1 ${status} `)).toBe(true);
      expect(connection.received).not.toContain('100 Continue');
      await connection.untilEnded();
    },
  );
});

describe('a body in chunks', () => {
  test('a chunked body over 1 MiB is 413, which reaches a sender that still sends', async () => {
    const id = newId();
    const connection = await connect();
    connection.head(...head('/v1/track', 'transfer-encoding: chunked'));
    const piece = chunk('x'.repeat(64 * 1024));
    await connection.write(chunk(JSON.stringify(event(id)).slice(0, -1)));
    for (let sent = 0; sent < 200 && !/^HTTP\/1\.1 413 .*\}$/s.test(connection.received); sent++) {
      await connection.write(piece);
    }
    await connection.until(/^HTTP\/1\.1 413 .*^connection: close\r$.*payload_too_large.*\}$/ms);
    expect([connection.error, await countEvents(id)]).toEqual([null, 0]);
  });

  test('a chunked body with a length is refused, because its end is ambiguous', async () => {
    const id = newId();
    const connection = await connect();
    const body = JSON.stringify(event(id));
    connection.head(...head('/v1/track', 'transfer-encoding: chunked', `content-length: ${body.length}`));
    await connection.write(chunk(body));
    await connection.write('0\r\n\r\n');
    await connection.untilEnded();
    expect(connection.received).toMatch(/^HTTP\/1\.1 400 /);
    expect(await countEvents(id)).toBe(0);
  });
});

describe('a client that hangs up', () => {
  const leave = {
    'with a goodbye': (connection: RawConnection) => void connection.socket.end(),
    'as a machine that crashes': (connection: RawConnection) => connection.reset(),
  };
  const ways = Object.entries(leave);

  test.each(ways)('a client that hangs up within the body, %s, leaves nothing stored', async (_, hangUp) => {
    const id = newId();
    const request = Buffer.from(site.request('/v1/track', event(id)));
    for (const missing of [1, 20]) {
      const connection = await connect();
      await connection.write(request.subarray(0, -missing));
      hangUp(connection);
      await connection.untilEnded();
    }
    await waitFor(
      'both to be noticed',
      () => log.filter(({ msg }) => msg === 'the client went away').length >= 2,
    );
    await site.accept('/v1/track', event(newId()));
    expect(await countEvents(id)).toBe(0);
  });

  test('a client that leaves while its record waits for the database does not harm the records beside it', async () => {
    const leaving = newId();
    const staying = newId();
    await site.accept('/v1/track', event(newId()));
    const lock = await site.hold('lock table sluice.events in share row exclusive mode');
    const connection = await connect();
    await connection.write(
      site.request('/v1/track', event(leaving)) + site.request('/v1/track', event(leaving)),
    );
    await site.blocked();
    const answers = Promise.all(Array.from({ length: 10 }, () => site.accept('/v1/track', event(staying))));
    connection.reset();
    await lock.release();
    await answers;
    expect(await countEvents(staying)).toBe(10);
    // The record arrived completely, so it must be stored.
    expect(await countEvents(leaving)).toBe(2);
  });

  test('a client that leaves while its key is looked up is dropped at once, and its record is not stored', async () => {
    const id = newId();
    const lock = await site.hold('lock table sluice.api_keys in access exclusive mode');
    const connection = await connect();
    const request = site.request('/v1/track', event(id)).replace('Token ', 'token  ');
    await connection.write(request.slice(0, -1));
    await site.blocked();
    connection.reset();
    await connection.untilEnded();
    await lock.release();
    await waitFor('it to be noticed', () => log.some(({ msg }) => msg === 'the client went away'));
    expect(await countEvents(id)).toBe(0);
  });
});

describe('a body that comes too slowly', () => {
  const slow = /^HTTP\/1\.1 408 .*^connection: close\r$.*upload_too_slow.*\}$/ims;
  const request = (id: string) => impatient.request('/v1/track', event(id));

  test('a body that stops is 408, and the connection is closed', async () => {
    for (const missing of [1, Buffer.byteLength(JSON.stringify(event('client-1')))]) {
      const id = newId();
      const connection = await connect(impatient);
      await connection.write(Buffer.from(request(id)).subarray(0, -missing));
      await connection.until(slow);
      connection.socket.end();
      await connection.untilEnded();
      expect(await countEvents(id, impatient)).toBe(0);
    }
  });
});
