import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface OpenConnections {
  /** From now on every answer is the last of its connection, and says so: whoever keeps connections goes elsewhere. */
  endWithAnswers(): void;
  /** Closes those without a request, now and as they come; the others close with their answer, which says so. */
  closeIdle(): void;
}

/**
 * Node closes connections that wait for their next request, but not those that never had one, which pools and browsers
 * open in advance: a stop would wait for them until their headers are overdue.
 */
export function trackConnections(server: Server): OpenConnections {
  const open = new Map<Socket, Set<ServerResponse>>();
  let leaving = false;
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
    if (leaving) response.shouldKeepAlive = false;
    response.once('close', () => {
      owed.delete(response);
      // What of the answer is still on its way out is sent first.
      if (stopping && owed.size === 0) socket.destroySoon();
    });
  });
  const endWithAnswers = (): void => {
    leaving = true;
    for (const owed of open.values()) for (const response of owed) response.shouldKeepAlive = false;
  };
  return {
    endWithAnswers,
    closeIdle() {
      stopping = true;
      endWithAnswers();
      for (const [socket, owed] of open) if (owed.size === 0) socket.destroy();
    },
  };
}
