import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports below the range of outgoing connections on Linux and macOS, which could take one before its
 * use.
 */
const first = 12_000;
const last = 30_000;

/** Returns a free port for a program that is started next. */
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
