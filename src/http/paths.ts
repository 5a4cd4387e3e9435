export const consolePath = '/console';

/**
 * Returns the path in the form that routes have: without a query, doubled slashes or a trailing
 * slash.
 */
export function pathOf(url: string): string {
  const path = url.split('?', 1)[0] ?? '';
  return path.replace(/\/+/g, '/').replace(/(?<=.)\/$/, '');
}

/**
 * Returns a regular expression for the paths of a route. Parameters may have patterns, as in
 * `/v1/:call(^(page|p)$)`.
 */
export function formOf(route: string): RegExp {
  const path = pathOf(route)
    .replace(/[.*]/g, '\\$&')
    .replace(/:\w+(?:\(\^(\([^)]*\))\$\))?/g, (_, form: string | undefined) => form ?? '[^/]+');
  return new RegExp(`^${path}$`);
}
