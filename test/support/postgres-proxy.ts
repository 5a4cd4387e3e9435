import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Stands between the service and Postgres, so that a test can take answers away. */
export interface PostgresProxy {
  /** The database's URL, by way of the proxy. */
  readonly url: string;
  /** From now on what Postgres says goes nowhere; what it is told still gets there. */
  mute(): void;
  /**
   * The next connection that says COMMIT is cut on its client's side, and Postgres hears of the COMMIT only `ms` later.
   * Never, if `ms` is null: then Postgres finds the connection closed.
   */
  delayNextCommit(ms: number | null): void;
  /** Cuts every connection. Those to come are as they should be. */
  cut(): void;
  close(): Promise<void>;
}

/** A simple query, as `pg` sends a statement without parameters. */
const commit = Buffer.from('commit\0');

export async function startPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let muted = false;
  let commitDelay: number | null | undefined;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    let isCommitting = false;
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay();
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        if (!isCommitting) other.destroy();
      });
    }
    client.on('data', (bytes) => {
      if (commitDelay === undefined || !bytes.includes(commit)) {
        upstream.write(bytes);
        return;
      }
      const delay = commitDelay;
      commitDelay = undefined;
      isCommitting = delay !== null;
      client.destroy();
      if (delay !== null) setTimeout(() => upstream.end(bytes), delay);
    });
    upstream.on('data', (bytes) => {
      if (!muted) client.write(bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  const cut = (): void => {
    muted = false;
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    mute() {
      muted = true;
    },
    delayNextCommit(ms) {
      commitDelay = ms;
    },
    cut,
    async close() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
