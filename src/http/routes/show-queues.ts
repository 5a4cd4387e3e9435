import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createAdminCheck, FailedLogins } from '../../access/admin-login.ts';
import type { System } from '../../context.ts';
import { type InputError, inputError } from '../../domain/errors.ts';
import { explainError, sendErrors } from '../plugins/errors.ts';

export const queuesPath = '/admin/queues';

/** Everything from here: the page would fetch a font from elsewhere, and telling others who looks is nobody's wish. */
const headers = {
  'content-security-policy':
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
} as const;

/** The dashboard of the queue, for whoever has ADMIN_KEY; without that setting there is no such address. Not in the document. */
export function showQueues(app: FastifyInstance, { config, openQueueDashboard }: System): void {
  const { adminKey } = config;
  if (adminKey === null) return;
  const guard = createGuard(adminKey);
  app.register(async (scope) => {
    const dashboard = await openQueueDashboard(queuesPath);
    scope.addHook('onClose', () => dashboard.close());
    scope.addHook('onRequest', (request, reply, done) => {
      reply.headers(headers);
      const refusal = guard(request, reply);
      // Answered here: the dashboard translates errors in its own way.
      if (refusal === null) done();
      else sendErrors(reply, explainError(refusal));
    });
    scope.register(dashboard.plugin, { prefix: queuesPath });
  });
}

/** Why a request is refused, with the headers that go with it; null: it is let in. */
function createGuard(adminKey: string): (request: FastifyRequest, reply: FastifyReply) => InputError | null {
  const isAdmin = createAdminCheck(adminKey);
  const failures = new FailedLogins();
  return ({ ip, method, headers: { authorization } }, reply) => {
    const seconds = failures.wait(ip);
    if (seconds > 0) {
      reply.header('retry-after', String(seconds));
      return inputError('rate_limited', 'Too many logins failed; try again later', `${seconds} s`);
    }
    if (!isAdmin(authorization)) {
      // A browser comes without a login first.
      if (authorization !== undefined) failures.failed(ip);
      reply.header('www-authenticate', 'Basic realm="sluice", charset="UTF-8"');
      return inputError('invalid_api_key', 'Unauthorized', 'user admin, password ADMIN_KEY');
    }
    failures.succeeded(ip);
    if (method === 'GET' || method === 'HEAD') return null;
    reply.header('allow', 'GET, HEAD');
    return inputError(
      'method_not_allowed',
      'The queue is only shown here',
      'sluice jobs cancel and retry act on jobs',
    );
  };
}
