import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

interface StallingProxy {
  readonly port: number;
  /**
   * Stops passing bytes on the open connections, but does not close them. New connections work, as
   * if the server had moved to another machine.
   */
  stall(): void;
  /** Holds responses back until `resume` is called. */
  hold(): void;
  /** Breaks all connections, open and new, until `resume` is called. */
  refuse(): void;
  resume(): void;
  /** Breaks open connections. New connections work. */
  cut(): void;
  close(): Promise<void>;
}

export async function startStallingProxy({ hostname, port }: URL): Promise<StallingProxy> {
  const pairs = new Map<Socket, Socket>();
  let isHeld = false;
  let isRefusing = false;
  const server = createServer((incoming) => {
    if (isRefusing) return incoming.destroy();
    const outgoing = connect(Number(port), hostname);
    pairs.set(incoming, outgoing);
    for (const socket of [incoming, outgoing]) socket.on('error', () => undefined);
    incoming.pipe(outgoing).pipe(incoming);
    if (isHeld) outgoing.unpipe();
  });
  const cut = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    stall() {
      for (const [incoming, outgoing] of pairs) {
        incoming.unpipe();
        outgoing.unpipe();
      }
    },
    hold() {
      isHeld = true;
      for (const outgoing of pairs.values()) outgoing.unpipe();
    },
    refuse() {
      isRefusing = true;
      cut();
    },
    resume() {
      isHeld = false;
      isRefusing = false;
      for (const [incoming, outgoing] of pairs) outgoing.pipe(incoming);
    },
    cut,
    async close() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
