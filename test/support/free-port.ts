import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that Linux and macOS give to outgoing connections: one of those would take it before it is used. */
const [first, last] = [12_000, 30_000];

/** A port for a program that is started next and has to be told it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * (last - first));
    const server = createServer().listen(port, '127.0.0.1');
    const free = await Promise.race([
      once(server, 'listening').then(() => true),
      new Promise<false>((resolve) => server.once('error', () => resolve(false))),
    ]);
    if (!free) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
