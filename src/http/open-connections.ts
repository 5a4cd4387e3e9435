import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface OpenConnections {
  /** Closes those without a request, now and as they come; the others close with their answer, which says so. */
  closeIdle(): void;
}

/**
 * Node closes connections that wait for their next request, but not those that never had one, which pools and browsers
 * open in advance: a stop would wait for them until their headers are overdue.
 */
export function trackConnections(server: Server): OpenConnections {
  const open = new Map<Socket, Set<ServerResponse>>();
  let stopping = false;
  server.on('connection', (socket: Socket) => {
    if (stopping) socket.destroy();
    open.set(socket, new Set());
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const owed = open.get(socket);
    if (owed === undefined) return;
    owed.add(response);
    if (stopping) response.shouldKeepAlive = false;
    response.once('close', () => {
      owed.delete(response);
      // What of the answer is still on its way out is sent first.
      if (stopping && owed.size === 0) socket.destroySoon();
    });
  });
  return {
    closeIdle() {
      stopping = true;
      for (const [socket, owed] of open) {
        for (const response of owed) response.shouldKeepAlive = false;
        if (owed.size === 0) socket.destroy();
      }
    },
  };
}
