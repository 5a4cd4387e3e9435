import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { baseUrl } from '../base-url.ts';
import type { DocumentText } from '../document-text.ts';

/**
 * Everything from here. The plugin's own policy would have browsers ask for the scripts over https, which a server on plain
 * http does not answer. Styles alone may be inline: the page sets some while it runs.
 */
const contentSecurityPolicy = {
  'default-src': "'self'",
  'img-src': "'self' data:",
  'style-src': "'self' 'unsafe-inline'",
  'object-src': "'none'",
  'base-uri': "'none'",
  'frame-ancestors': "'none'",
};

/** The paths below `/docs` at which the page and others find the document. */
const documentPaths: Readonly<Record<string, 'json' | 'yaml'>> = {
  '/docs/json': 'json',
  '/docs/yaml': 'yaml',
};

/** The document as a page for people at `/docs`, with its scripts and styles from the package. */
export function addApiDocs(app: FastifyInstance, { config }: System, document: DocumentText): void {
  app.register(swaggerUi, {
    routePrefix: '/docs',
    theme: { title: 'sluice' },
    uiConfig: { layout: 'BaseLayout', deepLinking: true, defaultModelsExpandDepth: 0 },
    staticCSP: contentSecurityPolicy,
    uiHooks: {
      // The package would make the text anew for every request.
      preHandler: (request, reply, done) => {
        const format = documentPaths[request.routeOptions.url ?? ''];
        if (format === undefined) done();
        else document.send(request, reply, format, baseUrl(request, config.publicUrl));
      },
    },
  });
}
