import type { FastifyRequest } from 'fastify';

/** A name or address and perhaps a port: nothing that could end a header, a path or a URL's authority. */
const plainHost = /^(?:[a-z0-9](?:[a-z0-9._-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * Where links point to, without a slash at the end: PUBLIC_URL, else the host the caller asked for, else, if that is
 * not a plain one, the address the request came in at.
 */
export function baseUrl(request: FastifyRequest, publicUrl: string | null): string {
  if (publicUrl !== null) return publicUrl;
  const host = request.headers.host;
  if (host !== undefined && plainHost.test(host)) return `http://${host.toLowerCase()}`;
  const { localAddress = '127.0.0.1', localPort = 80 } = request.socket;
  return `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

/** The value of a `Link` header that leads to the next page of the same listing. */
export function nextLink(request: FastifyRequest, base: string, cursor: string): string {
  const url = new URL(request.url, 'http://host');
  url.searchParams.set('cursor', cursor);
  return `<${base}${url.pathname}${url.search}>; rel="next"`;
}
