export const consolePath = '/console';

/** Returns a path without query, doubled slashes and trailing slash, as in routes. */
export function pathOf(url: string): string {
  const path = url.split('?', 1)[0] ?? '';
  return path.replace(/\/+/g, '/').replace(/(?<=.)\/$/, '');
}

/** Returns a pattern of a route's paths. Parameters may have patterns: `/v1/:call(^(page|p)$)`. */
export function formOf(route: string): RegExp {
  const path = pathOf(route)
    .replace(/[.*]/g, '\\$&')
    .replace(/:\w+(?:\(\^(\([^)]*\))\$\))?/g, (_, form: string | undefined) => form ?? '[^/]+');
  return new RegExp(`^${path}$`);
}
