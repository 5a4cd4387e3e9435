import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { type ApiDocument, documentFrame, finishDocument } from '../api-document.ts';
import { components } from '../schemas/components.ts';

/**
 * Collects the schemas of the routes that are registered after it into one document: `app.swagger()`, once the app is
 * ready.
 */
export function addApiDocument(app: FastifyInstance): void {
  // Schemas describe and do nothing at run time: our own readers report every problem at once with codes of our own, bodies
  // are streams that nothing may wait for, and a field that a schema forgets must fail a test, not vanish from an answer.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  for (const { schema } of components) app.addSchema(schema);
  app.register(swagger, {
    openapi: documentFrame() as object,
    convertConstToEnum: false,
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => String(json['$id'] ?? `schema-${i}`) },
    // What a key must allow is told once, to the hook that checks it. A route without a scope wants no key of ours.
    transform: ({ schema, url, route }) => {
      const scope = route.config?.scope;
      const security = scope === undefined ? (schema?.security ?? []) : [{ apiKey: [scope] }];
      return { url, schema: { ...schema, security } };
    },
    transformObject: (found) => {
      if (!('openapiObject' in found)) throw new Error('the document is to be OpenAPI');
      return finishDocument(found.openapiObject as unknown as ApiDocument) as object;
    },
  });
}
