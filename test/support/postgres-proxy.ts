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
  /** Swallows from now on what open connections carry, both ways, and closes none. Those to come are as they should be. */
  silence(): void;
  /** Resolves when a connection has gone silent in this way: so many bytes, of either end, after the client said the text. */
  silenceAfter(text: string, bytes: number): Promise<void>;
  close(): Promise<void>;
}

/** A simple query, as `pg` sends a statement without parameters. */
const commit = Buffer.from('commit\0');

interface Trap {
  readonly text: string;
  /** That still get through. */
  bytes: number;
  readonly sprung: () => void;
}

function takeTrap(traps: Trap[], bytes: Buffer): Trap | null {
  const at = traps.findIndex(({ text }) => bytes.includes(text));
  return at === -1 ? null : (traps.splice(at, 1)[0] ?? null);
}

export async function startPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const silent = new Set<Socket>();
  const traps: Trap[] = [];
  let muted = false;
  let commitDelay: number | null | undefined;
  /** The part of what a client or Postgres says that gets through. */
  const pass = (bytes: Buffer, client: Socket, trap: { armed: Trap | null }, fromClient: boolean): Buffer => {
    if (silent.has(client)) return bytes.subarray(0, 0);
    if (trap.armed === null) {
      if (fromClient) trap.armed = takeTrap(traps, bytes);
      return bytes;
    }
    const through = bytes.subarray(0, trap.armed.bytes);
    trap.armed.bytes -= through.length;
    if (trap.armed.bytes === 0) {
      silent.add(client);
      trap.armed.sprung();
    }
    return through;
  };
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
        // Nor does the other end of a silent one hear of the end.
        if (!isCommitting && !silent.has(client)) other.destroy();
      });
    }
    const trap = { armed: null };
    client.on('data', (bytes) => {
      if (commitDelay === undefined || !bytes.includes(commit)) {
        upstream.write(pass(bytes, client, trap, true));
        return;
      }
      const delay = commitDelay;
      commitDelay = undefined;
      isCommitting = delay !== null;
      client.destroy();
      if (delay !== null) setTimeout(() => upstream.end(bytes), delay);
    });
    upstream.on('data', (bytes) => {
      if (!muted) client.write(pass(bytes, client, trap, false));
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
    silence() {
      for (const socket of sockets) silent.add(socket);
    },
    silenceAfter: (text, bytes) => new Promise((sprung) => traps.push({ text, bytes, sprung })),
    async close() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
