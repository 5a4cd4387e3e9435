import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { inputError } from '../../domain/errors.ts';

const sane = /^[\x21-\x7e]{1,128}$/;

/** The caller's own id, if it can be logged and sent back as it is; else a new one. */
export function chooseRequestId(raw: IncomingMessage): string {
  const given = raw.headers['x-request-id'];
  return typeof given === 'string' && sane.test(given) ? given : randomUUID();
}

const api = /^\/+(?:api\/+)?v1\//;

/**
 * Sets the headers that every answer has, and refuses a request with two Host headers, since a proxy in front of us may
 * have gone by the other one.
 */
export function addStandardHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    setStandardHeaders(request, reply);
    done(
      hasTwoHosts(request.raw) ? inputError('invalid_field', 'The request has two Host headers') : undefined,
    );
  });
}

export function setStandardHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
  if (api.test(request.url)) reply.header('cache-control', 'no-store');
}

function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts > 1;
}
