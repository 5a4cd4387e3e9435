import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { TestCertificates } from './certificates.ts';

/** A TLS server in front of the PostgreSQL server at `url`. It refuses connections without TLS. */
interface TlsPostgres {
  readonly port: number;
  /** Number of TLS connections so far. */
  readonly encrypted: number;
  stop(): Promise<void>;
}

const requestBytes = 8;
const sslRequest = 80_877_103;

export async function startTlsPostgres(url: string, { cert, key }: TestCertificates): Promise<TlsPostgres> {
  const behind = new URL(url);
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket)));
  };
  let encrypted = 0;
  const server = createServer((socket) => {
    keep(socket);
    socket.once('readable', () => {
      const request = socket.read(requestBytes) as Buffer | null;
      if (request === null || request.readUInt32BE(4) !== sslRequest) return socket.destroy();
      socket.write('S');
      const secure = new TLSSocket(socket, { isServer: true, cert, key });
      secure.on('error', () => socket.destroy());
      secure.once('secure', () => {
        encrypted++;
      });
      const outgoing = connect(Number(behind.port), behind.hostname);
      keep(outgoing);
      outgoing.on('close', () => socket.destroy());
      socket.on('close', () => outgoing.destroy());
      secure.pipe(outgoing).pipe(secure);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    get encrypted() {
      return encrypted;
    },
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
