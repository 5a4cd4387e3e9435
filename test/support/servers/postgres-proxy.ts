import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy between the service and PostgreSQL that can drop responses. */
export interface PostgresProxy {
  readonly url: string;
  /** From now on, passes requests but drops all responses. */
  mute(): void;
  /**
   * Cuts off the client of the next connection that sends COMMIT. PostgreSQL receives the COMMIT
   * `ms` later, or never if `ms` is `null`.
   */
  delayNextCommit(ms: number | null): void;
  /** Cuts every open connection. Later connections work. */
  cut(): void;
  /**
   * From now on, drops all bytes on the open connections, in both directions, without closing them.
   * Later connections work.
   */
  silence(): void;
  /**
   * Waits for the next connection that sends `text`, passes `bytes` more bytes, and then silences
   * the connection. Resolves once it is silenced.
   */
  silenceAfter(text: string, bytes: number): Promise<void>;
  close(): Promise<void>;
}

/** A COMMIT as `pg` sends it: as a simple query, because it has no parameters. */
const commit = Buffer.from('commit\0');

interface Trap {
  readonly text: string;
  /** Number of bytes that may still pass before the connection is silenced. */
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
  /**
   * Decides how many of the bytes from one side are passed to the other side. Returns these bytes.
   */
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
        // When one side closes a silenced connection, the other side must not notice.
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
