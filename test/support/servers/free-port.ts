import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Range of ports to choose from. Outgoing connections on Linux and macOS use higher ports, so none
 * can occupy a chosen port before the test uses it.
 */
const first = 12_000;
const last = 30_000;

export async function freePort(): Promise<number> {
  const port = first + Math.floor(Math.random() * (last - first));
  const server = createServer().listen(port, '127.0.0.1');
  const isFree = await Promise.race([
    once(server, 'listening').then(() => true),
    new Promise<false>((resolve) => server.once('error', () => resolve(false))),
  ]);
  if (!isFree) return freePort();
  server.close();
  await once(server, 'close');
  return port;
}
