import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCertificates } from '../support/servers/certificates.ts';
import { freePort } from '../support/servers/free-port.ts';
import { openServer } from '../support/servers/http.ts';

import { isInstalled, withSystemFolders } from '../support/servers/system-tools.ts';
import { waitFor } from '../support/wait-for.ts';

const samples = resolve(import.meta.dirname, '../../examples/proxy');
const MiB = 2 ** 20;

// PUBLIC_URL is not set, so links have the address that the proxy forwards.
const { t, server } = await openServer({ worker: true, settings: { TRUST_PROXY: '127.0.0.1' } });
const folder = await mkdtemp(join(tmpdir(), 'sluice-proxies-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Proxy {
  readonly child: ChildProcess;
  /** URL of the form https://localhost:port. */
  readonly url: string;
}

/**
 * Starts nginx with the sample site. Replaces the site's addresses and certificate with those of
 * the test, and adds the rest of the configuration.
 */
async function startNginx(): Promise<Proxy> {
  const port = await freePort();
  const plain = await freePort();
  const { key, cert, remove } = await createCertificates();
  await remove();
  const file = (name: string): string => join(folder, name);
  await writeFile(file('fullchain.pem'), cert);
  await writeFile(file('privkey.pem'), key);
  const sample = await readFile(join(samples, 'nginx.conf'), 'utf8');
  const site = sample
    .replace('listen 443 ssl http2', `listen 127.0.0.1:${port} ssl http2`)
    .replace('listen 80', `listen 127.0.0.1:${plain}`)
    .replace('server 127.0.0.1:8080', `server ${new URL(server.address).host}`)
    .replaceAll('/etc/letsencrypt/live/sluice.example.com', folder);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${file(name)};`,
  );
  const around = `daemon off; master_process off; pid ${file('pid')}; error_log stderr; events {}
    http { access_log off; ${temporary.join(' ')} ${site} }`;
  await writeFile(file('nginx.conf'), around);
  const child = start('nginx', ['-e', 'stderr', '-p', folder, '-c', file('nginx.conf')]);
  return listening({ child, url: `https://localhost:${port}` });
}

/** The options prevent Caddy from changing the certificates that this machine trusts. */
async function startCaddy(): Promise<Proxy> {
  const url = `https://localhost:${await freePort()}`;
  const file = join(folder, 'Caddyfile');
  const options =
    '{\n admin off\n skip_install_trust\n auto_https disable_redirects\n default_bind 127.0.0.1\n}\n';
  await writeFile(file, `${options}import ${join(samples, 'Caddyfile')}\n`);
  const child = start('caddy', ['run', '--config', file, '--adapter', 'caddyfile'], {
    SITE: url,
    UPSTREAM: new URL(server.address).host,
    HOME: folder,
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
  });
  return listening({ child, url });
}

function start(
  program: string,
  args: readonly string[],
  variables: Record<string, string> = {},
): ChildProcess {
  return spawn(program, args, {
    env: { ...withSystemFolders(), ...variables },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

async function listening(proxy: Proxy): Promise<Proxy> {
  let errors = '';
  proxy.child.stderr?.on('data', (text: Buffer) => {
    errors += text.toString();
  });
  const port = Number(new URL(proxy.url).port);
  await waitFor('the proxy to listen', async () => {
    if (proxy.child.exitCode !== null) throw new Error(`it ended: ${errors}`);
    const socket = connect(port, '127.0.0.1');
    const open = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    return open;
  });
  return proxy;
}

describe.each([
  ['nginx', startNginx],
  ['caddy', startCaddy],
] as const)('behind %s as in examples/proxy', (program, startProxy) => {
  const installed = isInstalled(program);
  const agent = new Agent({ rejectUnauthorized: false, servername: 'localhost' });
  let proxy: Proxy;
  beforeAll(async () => {
    if (installed) proxy = await startProxy();
  });
  afterAll(async () => {
    agent.destroy();
    if (!installed || proxy.child.exitCode !== null) return;
    const exited = once(proxy.child, 'exit');
    proxy.child.kill('SIGKILL');
    await exited;
  });

  /** Begins a request. The caller sends the body later. */
  function begin(method: string, path: string, headers: IncomingHttpHeaders = {}): ClientRequest {
    const { port } = new URL(proxy.url);
    const all = { host: `localhost:${port}`, authorization: `Token ${t.key}`, ...headers };
    const options = { host: '127.0.0.1', port, path, method, agent, headers: all };
    const sent = request(options);
    sent.on('error', () => undefined);
    return sent;
  }

  const answerOf = (sent: ClientRequest): Promise<IncomingMessage> =>
    once(sent, 'response').then(([response]) => response as IncomingMessage);

  async function call(
    method: string,
    path: string,
    headers: IncomingHttpHeaders = {},
    body?: string | Buffer,
  ) {
    const sent = begin(method, path, headers);
    sent.end(body);
    const response = await answerOf(sent);
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
  }

  async function storedBytes(): Promise<number> {
    const sizes = (await t.storedFiles()).map((file) =>
      stat(file).then(
        ({ size }) => size,
        () => 0,
      ),
    );
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  }

  // proves: proxies
  test.skipIf(!installed)(
    'a proxy passes on the bytes of an upload before its sender has sent all',
    async () => {
      const rows = Buffer.from(`u1,${'x'.repeat(1021)}\n`.repeat(1024));
      const header = Buffer.from('user_id,text\n');
      const before = await storedBytes();
      const upload = begin('POST', '/v1/imports', {
        'content-type': 'text/csv',
        'content-length': String(header.length + 32 * rows.length),
      });
      const answer = answerOf(upload);
      upload.write(header);
      for (let n = 0; n < 24; n++) upload.write(rows);
      await waitFor(
        'the server to have most of what was sent',
        async () => (await storedBytes()) - before > 16 * MiB,
      );
      for (let n = 0; n < 8; n++) upload.write(rows);
      upload.end();
      const response = await answer;
      const { file_size: size } = JSON.parse((await buffer(response)).toString()) as {
        readonly file_size: unknown;
      };
      expect([response.statusCode, Number(size)]).toEqual([200, header.length + 32 * rows.length]);
    },
  );

  // proves: proxies
  test.skipIf(!installed)('a proxy passes on a refusal while the file is still being sent', async () => {
    const upload = begin('POST', '/v1/imports', {
      authorization: 'Token wrong',
      'content-type': 'text/csv',
      'content-length': String(64 * MiB),
    });
    upload.write(Buffer.alloc(MiB, 'x'));
    expect((await answerOf(upload)).statusCode).toBe(401);
    upload.destroy();
  });

  // proves: proxies
  test.skipIf(!installed)(
    'the cookie of the console is for TLS only behind a proxy, and the metrics are hidden',
    async () => {
      const body = JSON.stringify({ key: t.key });
      const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' };
      const signedIn = await call('POST', '/v1/console/sign_in', headers, body);
      expect(signedIn.status).toBe(200);
      expect(signedIn.headers['set-cookie']?.[0]).toMatch(/^sluice_session=.*; Secure$/);
      expect((await call('GET', '/metrics')).status).toBe(404);
      expect(signedIn.headers['strict-transport-security']).toBe('max-age=31536000');
    },
  );
});
