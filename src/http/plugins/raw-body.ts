import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';

/** Fields (options) of a form, and bytes of one: a `map` of many columns fits. */
const maxFields = 1_000;
const maxFieldBytes = 64 * 1024;

/**
 * Bodies are left on the wire for the handler to stream, whatever their type says: nothing is buffered, and what a
 * handler does not ask for (the `{}` that some clients send) is not looked at. A route that wants a parsed body
 * registers its parser in a scope of its own.
 */
export function addRawBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.register(multipart, {
    // Size is the business of the limits that all uploads have. A second file is let in to be refused with a reason.
    limits: { fileSize: Number.POSITIVE_INFINITY, files: 2, fields: maxFields, fieldSize: maxFieldBytes },
    throwFileSizeLimit: false,
    isPartAFile: (name, _type, filename) => name === 'file' || filename !== undefined,
  });
}
