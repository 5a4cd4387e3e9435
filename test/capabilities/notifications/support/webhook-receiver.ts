import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface ReceivedWebhook {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface WebhookReceiver {
  /** URL of the form http://127.0.0.1:port/hooks. */
  readonly url: string;
  readonly port: number;
  readonly received: readonly ReceivedWebhook[];
  readonly connections: number;
  /** Sets how the server responds to later requests. Default: status 204. */
  answer(how: (response: ServerResponse, nth: number) => void): void;
  stop(): Promise<void>;
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  let connections = 0;
  let answer = (response: ServerResponse, _nth: number): void => void response.writeHead(204).end();
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      received.push({ method, path: url, headers, body: Buffer.concat(pieces) });
      answer(response, received.length);
    });
    response.on('error', () => undefined);
  });
  server.on('connection', () => {
    connections++;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hooks`,
    port,
    received,
    get connections() {
      return connections;
    },
    answer(how) {
      answer = how;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
