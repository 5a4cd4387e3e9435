/*
 * The agents of Node's HTTP client, for the libraries that use it: the SDK of S3 and the exporter of spans.
 */
import type { Agent } from 'node:http';

/**
 * Gives every connection of the agent a listener of its errors. Node's client leaves one without: if a server answers before it
 * has read the body and then resets the connection, the write that fails counts as the end of the request, and the client
 * takes its listener away before the error is emitted (`requestOnFinish`, Node 20 to 24). An error event without a listener
 * ends the process. The request itself has failed or been answered by then, so nothing is lost with the error.
 */
export function guardAgent<A extends Agent>(agent: A): A {
  const connect = agent.createConnection;
  agent.createConnection = (options, done) => {
    const socket = connect.call(agent, options, done);
    socket?.on('error', () => undefined);
    return socket;
  };
  return agent;
}
