import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const sane = /^[\x21-\x7e]{1,128}$/;

/** The caller's own id, if it can be logged and sent back as it is; else a new one. */
export function chooseRequestId(raw: IncomingMessage): string {
  const given = raw.headers['x-request-id'];
  return typeof given === 'string' && sane.test(given) ? given : randomUUID();
}

/** Every answer has these. */
export function addStandardHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    setStandardHeaders(request, reply);
    done();
  });
}

/** The id under which the log knows the request; and no browser is to guess that data of others is a page or a script. */
export function setStandardHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
}
