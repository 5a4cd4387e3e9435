import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';

export const clientId = 'sluice';
export const clientSecret = 'the-client-secret-of-the-tests';

type Payload = Record<string, unknown>;

/** An OpenID Connect provider in this process. Anybody can sign in there. */
export interface TestProvider {
  readonly issuer: string;
  /** Groups of each person, by the person's name. */
  readonly groups: Map<string, readonly string[]>;
  /** Names of people who no longer have an account. */
  readonly left: Set<string>;
  /** Changes the ID token of later sign-ins. `null` leaves it unchanged. */
  forge: ((payload: Payload, header: Payload) => string) | null;
  /** If true, the provider rejects the client's credentials when the client exchanges a code. */
  refusesClient: boolean;
  sign(payload: Payload, header?: Payload): string;
  /** Signs with the given secret or key instead of the provider's, as an attacker would. */
  signWith(payload: Payload, header: Payload, key: string | KeyObject): string;
  readonly publicPem: string;
  readonly requests: string[];
  /** Stops the provider. A later `start` uses the same address. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

const encode = (part: Payload) => Buffer.from(JSON.stringify(part)).toString('base64url');

function signed(payload: Payload, header: Payload, key: string | KeyObject | null): string {
  const text = `${encode(header)}.${encode(payload)}`;
  if (key === null) return `${text}.`;
  const signature =
    typeof key === 'string'
      ? createHmac('sha256', key).update(text).digest()
      : sign('sha256', Buffer.from(text), key);
  return `${text}.${signature.toString('base64url')}`;
}

export async function openProvider(publicUrl: string): Promise<TestProvider> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = { ...privateKey.export({ format: 'jwk' }), kid: 'one', use: 'sig', alg: 'RS256' };
  const groups = new Map<string, readonly string[]>();
  const left = new Set<string>();
  let handle: ReturnType<Provider['callback']> | null = null;
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    if (request.url === '/token' && provider.refusesClient) {
      const headers = { 'content-type': 'application/json', 'www-authenticate': 'Basic realm="tokens"' };
      response.writeHead(401, headers).end('{"error":"invalid_client"}');
      return;
    }
    if (request.url === '/token' && provider.forge !== null) replaceToken(response, provider.forge);
    void handle?.(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;
  handle = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [`${publicUrl}/v1/console/oidc/callback`],
        post_logout_redirect_uris: [`${publicUrl}/console`],
      },
    ],
    jwks: { keys: [jwk] },
    cookies: { keys: ['the-key-of-the-cookies'] },
    claims: { openid: ['sub', 'groups'] },
    pkce: { required: () => true },
    findAccount: (_: unknown, sub: string) =>
      left.has(sub)
        ? undefined
        : { accountId: sub, claims: async () => ({ sub, groups: groups.get(sub) ?? [] }) },
  }).callback();
  const header = { alg: 'RS256', kid: 'one' };
  const provider: TestProvider = {
    issuer,
    groups,
    left,
    forge: null,
    refusesClient: false,
    requests,
    publicPem: publicKey.export({ format: 'pem', type: 'spki' }).toString(),
    sign: (payload, more = {}) => signed(payload, { ...header, ...more }, privateKey),
    signWith: (payload, more, key) => signed(payload, { ...header, ...more }, key === '' ? null : key),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
    async start() {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
  };
  return provider;
}

function replaceToken(response: ServerResponse, forge: NonNullable<TestProvider['forge']>): void {
  const end = response.end.bind(response) as (body: string) => ServerResponse;
  response.end = ((body: string | Buffer) => {
    const answer = JSON.parse(String(body)) as { id_token?: string };
    if (answer.id_token !== undefined) {
      const [header = {}, payload = {}] = answer.id_token
        .split('.', 2)
        .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Payload);
      answer.id_token = forge(payload, header);
    }
    const text = JSON.stringify(answer);
    response.setHeader('content-length', Buffer.byteLength(text));
    return end(text);
  }) as ServerResponse['end'];
}
