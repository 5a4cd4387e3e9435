import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { waitFor } from '../wait-for.ts';

/**
 * A load balancer that sends requests to the ready servers in turn, over keep-alive connections. If
 * a server refuses a request, the next server gets it. If a server is lost during a request, the
 * request is not repeated.
 */
interface LoadBalancer {
  readonly url: string;
  /** Starts probing a server. Resolves when it is ready. */
  add(server: string): Promise<void>;
  /** Returns whether the server reported that it was not ready before it ended. */
  saidGoodbye(server: string): boolean;
  /**
   * Responses of status 500 or higher, lost connections, and requests that found no ready server.
   */
  readonly faults: readonly string[];
  close(): Promise<void>;
}

interface Backend {
  readonly url: URL;
  readonly agent: Agent;
  ready: boolean;
  saidGoodbye: boolean;
}

const probeEveryMs = 50;
/**
 * Number of consecutive failed probes after which a server gets no more requests. A single probe
 * may just be slow.
 */
const fall = 3;

export async function startLoadBalancer(): Promise<LoadBalancer> {
  const backends = new Map<string, Backend>();
  const faults: string[] = [];
  let turn = 0;
  let isClosing = false;

  const probe = async (backend: Backend): Promise<void> => {
    for (let failures = 0; !isClosing; await delay(probeEveryMs)) {
      const status = await ask(backend.url);
      failures = status === 200 ? 0 : failures + 1;
      if (failures === 0) backend.ready = true;
      if (backend.ready && status === 503) backend.saidGoodbye = true;
      if (failures !== fall) continue;
      backend.ready = false;
    }
  };
  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    await send(incoming, Buffer.concat(parts), outgoing);
  };
  const send = async (incoming: IncomingMessage, body: Buffer, outgoing: ServerResponse): Promise<void> => {
    const what = `${incoming.method} ${incoming.url}`;
    const ready = [...backends.values()].filter((backend) => backend.ready);
    const backend = ready[turn++ % ready.length];
    if (backend === undefined) {
      faults.push(`${what}: no server is ready`);
      outgoing.writeHead(503).end();
      return;
    }
    try {
      const status = await pass(backend, incoming, body, outgoing);
      if (status >= 500) faults.push(`${what}: ${status}`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') {
        backend.ready = false;
        await send(incoming, body, outgoing);
        return;
      }
      faults.push(`${what}: ${String(error)}`);
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502).end();
    }
  };

  const server = createServer((incoming, outgoing) => {
    forward(incoming, outgoing).catch((error: unknown) => faults.push(String(error)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    async add(address) {
      const backend = {
        url: new URL(address),
        agent: new Agent({ keepAlive: true }),
        ready: false,
        saidGoodbye: false,
      };
      backends.set(address, backend);
      void probe(backend);
      await waitFor(`${address} to be ready`, () => backend.ready);
    },
    saidGoodbye: (address) => backends.get(address)?.saidGoodbye === true,
    faults,
    async close() {
      isClosing = true;
      for (const { agent } of backends.values()) agent.destroy();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** Returns the status of /health/ready. 0 if there was no response. */
function ask(url: URL): Promise<number> {
  return new Promise((resolve) => {
    const sending = request(new URL('/health/ready', url), { agent: false }, (response) => {
      response.resume();
      response.on('error', () => resolve(0));
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sending.on('error', () => resolve(0));
    sending.end();
  });
}

/**
 * Forwards a request to a server. Resolves with the status once the whole response has been
 * forwarded to the client.
 */
function pass(
  { url, agent }: Backend,
  { method, url: path = '/', headers }: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
): Promise<number> {
  const { connection: _, 'transfer-encoding': __, ...passed } = headers;
  return new Promise((resolve, reject) => {
    const options = { method, agent, headers: { ...passed, 'content-length': body.length } };
    const sending = request(new URL(path, url), options, (response) => {
      const { connection: ___, 'keep-alive': ____, ...headersBack } = response.headers;
      outgoing.writeHead(response.statusCode ?? 0, headersBack);
      response.on('error', reject);
      response.on('end', () => resolve(response.statusCode ?? 0));
      response.pipe(outgoing);
    });
    sending.on('error', reject);
    sending.end(body);
  });
}
