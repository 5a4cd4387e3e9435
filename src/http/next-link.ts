import type { FastifyRequest } from 'fastify';

/** The value of a `Link` header that leads to the next page of the same listing. */
export function nextLink(request: FastifyRequest, base: string, cursor: string): string {
  const url = new URL(request.url.split('?', 1)[0] ?? '', 'http://host');
  const parameters = new URLSearchParams(request.query as Record<string, string>);
  parameters.set('cursor', cursor);
  return `<${base}${url.pathname}?${parameters}>; rel="next"`;
}
