import type { FastifyInstance } from 'fastify';
import { inputError } from '../../domain/errors.ts';

export const noSuchAddress = 'There is no such address; /docs shows those there are';

/** A path that exists under other methods: 405 with `Allow`. No such path: 404. Register before the routes. */
export function addNotFound(app: FastifyInstance): void {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set();
    for (const each of [method].flat()) known.add(each);
    methods.set(url, known);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0]?.replace(/\/+$/, '') ?? '';
    const allowed = [...methods]
      .filter(([pattern]) => matches(pattern, path))
      .flatMap(([, each]) => [...each]);
    if (allowed.length === 0) {
      throw inputError('route_not_found', noSuchAddress, `${request.method} ${printable(path)}`);
    }
    const allow = [...new Set(allowed)].sort().join(', ');
    reply.header('allow', allow);
    throw inputError('method_not_allowed', `${request.method} is not allowed here`, `allowed: ${allow}`);
  });
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.replace(/\/$/, '').split('/');
  const given = path.split('/');
  return (
    wanted.length === given.length && wanted.every((each, at) => each.startsWith(':') || each === given[at])
  );
}

function printable(path: string): string {
  return path.replace(/[^\x20-\x7e]/g, '?').slice(0, 200);
}
