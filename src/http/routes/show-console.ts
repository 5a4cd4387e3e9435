import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { chooseEncoding, consolePath, readConsoleAssets, renderShell } from '../../console/assets.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { namesTag } from '../request-headers.ts';

/** Everything from here, and nothing that is written into the page. */
const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-cache',
} as const;

/** The console's page, which is the same at every address below, and its files. Not in the document. */
export function showConsole(app: FastifyInstance, { config }: System): void {
  app.register(async (scope) => {
    const assets = await readConsoleAssets();
    // Run from the sources, before anything was built.
    if (assets === null) return;
    const prefix = config.publicUrl === null ? '' : new URL(config.publicUrl).pathname.replace(/\/+$/, '');
    const page = renderShell(assets.manifest, prefix);
    const etag = `"${createHash('sha256').update(page).digest('hex')}"`;
    // The operator of an overloaded service must reach the console. The files are in memory, and the same for everybody.
    const hidden = { config: { alwaysServed: true }, schema: { hide: true } } as const;
    for (const path of [consolePath, `${consolePath}/*`]) {
      scope.get(path, hidden, (request, reply) => {
        reply.headers(pageHeaders).header('etag', etag);
        if (namesTag(request.headers['if-none-match'], etag)) reply.code(304).send();
        else reply.type('text/html; charset=utf-8').send(page);
      });
    }
    scope.get<{ Params: { name: string } }>(`${consolePath}/assets/:name`, hidden, (request, reply) => {
      const asset = assets.files.get(request.params.name);
      if (asset === undefined) throw inputError('route_not_found', 'There is no such file', '');
      const encoding = chooseEncoding(request.headers['accept-encoding']);
      if (encoding !== 'identity') reply.header('content-encoding', encoding);
      reply
        .header('cache-control', 'public, max-age=31536000, immutable')
        .header('vary', 'accept-encoding')
        .type(asset.type)
        .send(asset.bodies[encoding]);
    });
  });
}
