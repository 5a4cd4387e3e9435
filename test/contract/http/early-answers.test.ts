import { afterEach, describe, expect, test } from 'vitest';
import { openServer, type RawConnection, serve } from '../../support/servers/http.ts';
import { openTestSystem } from '../../support/servers/system.ts';

const { t, server } = await openServer({
  settings: { MAX_UPLOAD_BYTES: '4m', UPLOAD_STALL_MS: '500' },
});

const connections: RawConnection[] = [];
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.reset();
  expect(await t.storedFiles()).toEqual([]);
  expect((await server.fetch('/v1/background_jobs')).headers.get('x-total-count')).toBe('0');
});

async function upload(...headers: string[]): Promise<RawConnection> {
  const connection = await server.connect();
  connections.push(connection);
  connection.head('POST /v1/imports HTTP/1.1', 'host: x', ...headers);
  return connection;
}

const authorized = () => `authorization: Token ${t.key}`;
const partHead = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n';
const rows = 'user-id,some name\n'.repeat(60_000);

describe('an answer before the end of the body', () => {
  /** Keeps sending the body, as many clients do, until the response arrives. */
  async function sendUntilAnswered(
    connection: RawConnection,
    answer: RegExp,
    chunked: boolean,
  ): Promise<void> {
    const most = chunked ? 40 : 4;
    const isAnswered = () => answer.test(connection.received) || connection.ended;
    for (let sent = 0; sent < most && !isAnswered(); sent++) {
      await connection.write(chunked ? `${rows.length.toString(16)}\r\n${rows}\r\n` : rows);
    }
    await connection.until(answer);
  }

  test.each([
    ['401', ['content-type: text/csv', 'content-length: 100000000'], /^HTTP\/1.1 401 .*invalid_api_key/s, ''],
    [
      '415',
      ['content-type: text/html', 'content-length: 100000000'],
      /^HTTP\/1.1 415 .*unsupported_media/s,
      'key',
    ],
    [
      '400',
      ['content-type: text/csv', 'content-length: 5000000', 'idempotency-key: ü'],
      /^HTTP\/1.1 400 /,
      'key',
    ],
    [
      '413 for a chunked body',
      ['content-type: text/csv', 'transfer-encoding: chunked'],
      /^HTTP\/1.1 413 .*payload_too/s,
      'key',
    ],
  ])('%s reaches a client that still sends, with connection: close', async (_, headers, answer, key) => {
    const connection = await upload(...headers, ...(key === '' ? [] : [authorized()]));
    const chunked = headers.includes('transfer-encoding: chunked');
    if (chunked && key !== '') await connection.write('8\r\nuser_id\n\r\n');
    await sendUntilAnswered(connection, answer, chunked);
    expect(connection.received).toMatch(/^connection: close\r$/im);
    expect(connection.error).toBeNull();
  });

  test('413 reaches a client that still sends a form', async () => {
    const connection = await upload(
      'content-type: multipart/form-data; boundary=b',
      'transfer-encoding: chunked',
      authorized(),
    );
    await connection.write(`${(partHead.length + 8).toString(16)}\r\n${partHead}user_id\n\r\n`);
    await sendUntilAnswered(connection, /^HTTP\/1.1 413 .*payload_too_large.*\}$/s, true);
    expect(connection.error).toBeNull();
  });

  test('a connection on which the sender never stops is closed', async () => {
    const connection = await upload('content-type: text/csv', 'transfer-encoding: chunked');
    await connection.until(/^HTTP\/1.1 401 /);
    for (let sent = 0; sent < 200 && !connection.ended; sent++) {
      await connection.write(`${rows.length.toString(16)}\r\n${rows}\r\n`);
    }
    await connection.untilEnded();
  });

  test('the rest of a refused short body does not disturb the next request', async () => {
    const connection = await upload('content-type: text/csv', 'content-length: 60000', authorized());
    await connection.write(`PK\x03\x04${'x'.repeat(59_996)}`);
    await connection.until(/^HTTP\/1.1 400 .*unsupported_format.*\}$/s);
    if (!/^connection: close\r$/im.test(connection.received)) {
      connection.head('GET /v1/background_jobs HTTP/1.1', 'host: x', authorized());
      await connection.until(/\}HTTP\/1.1 200 /);
    }
    expect(connection.error).toBeNull();
  });
});

describe('Expect: 100-continue', () => {
  test('a refusal is sent instead of 100 Continue', async () => {
    const headers = ['content-type: text/csv', 'content-length: 3000000', 'expect: 100-continue'];
    const connection = await upload(...headers);
    await connection.until(/^HTTP\/1.1 401 .*\}$/s);
    expect(connection.received).not.toContain('100 Continue');
    const large = await upload(...headers.with(1, 'content-length: 100000000'), authorized());
    await large.until(/^HTTP\/1.1 413 .*\}$/s);
    await large.untilEnded();
  });
});

describe('a sender that stalls', () => {
  test.each([
    ['within a body', 'content-type: text/csv', 'user_id\n1\n'],
    ['within a small body of JSON', 'content-type: application/json', '[{"user_id":'],
    ['within a file of a form', 'content-type: multipart/form-data; boundary=b', `${partHead}user_id\n1\n`],
    ['before the first part', 'content-type: multipart/form-data; boundary=b', '--b\r\nContent-'],
    [
      'after the end of the form',
      'content-type: multipart/form-data; boundary=b',
      `${partHead}user_id\n1\n\r\n--b--\r\n`,
    ],
  ])('a sender that stalls %s is answered 408', async (_, type, body) => {
    const connection = await upload(type, 'content-length: 1000', authorized());
    await connection.write(body);
    await connection.until(/^HTTP\/1.1 408 .*upload_too_slow.*\}$/s);
  });
});

test('a form whose fields trickle in is answered 408, though no field stalls', async () => {
  const other = await openTestSystem({ settings: { UPLOAD_STALL_MS: '30000' } });
  const there = await serve(other);
  try {
    const connection = await there.connect();
    connection.head(
      'POST /v1/imports HTTP/1.1',
      'host: x',
      'content-type: multipart/form-data; boundary=b',
      'content-length: 1000000',
      `authorization: Token ${other.key}`,
    );
    const field = '--b\r\nContent-Disposition: form-data; name="map"\r\n\r\nA=b\r\n';
    // Sends the body at a tenth of the required rate.
    const sending = setInterval(() => void connection.write(field), 500);
    try {
      await connection.until(/^HTTP\/1.1 408 .*upload_too_slow.*bytes a second.*\}$/s);
    } finally {
      clearInterval(sending);
      connection.reset();
    }
  } finally {
    await there.stop();
    await other.close();
  }
});
