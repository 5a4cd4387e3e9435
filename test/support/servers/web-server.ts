import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { createCertificates } from './certificates.ts';

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A web server. The test defines its response for each path. */
export interface WebServer {
  /** URL of the form `https://127.0.0.1:port`. */
  readonly url: string;
  /** Certificate authority of the server, in PEM. `null` if the server uses http. */
  readonly cert: string | null;
  readonly requests: IncomingMessage[];
  /** Defines the response for a path. A path without a query matches any query. */
  answer(path: string, how: Answer): void;
  stop(): Promise<void>;
}

export async function startWebServer(protocol: 'http' | 'https'): Promise<WebServer> {
  const answers = new Map<string, Answer>();
  const requests: IncomingMessage[] = [];
  const listen: Answer = (request, response) => {
    requests.push(request);
    const { url = '' } = request;
    const how = answers.get(url) ?? answers.get(url.replace(/\?.*$/, ''));
    if (how !== undefined) return how(request, response);
    response.writeHead(404).end();
  };
  const certificate = protocol === 'https' ? await createCertificates('DNS:localhost,IP:127.0.0.1') : null;
  await certificate?.remove();
  const server = certificate === null ? http.createServer(listen) : https.createServer(certificate, listen);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cert: certificate?.ca ?? null,
    requests,
    answer: (path, how) => void answers.set(path, how),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
