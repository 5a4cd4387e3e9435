export const consolePath = '/console';

/** Returns a path as in routes: no query, doubled slashes or trailing slash. */
export function pathOf(url: string): string {
  const path = url.split('?', 1)[0] ?? '';
  return path.replace(/\/+/g, '/').replace(/(?<=.)\/$/, '');
}

/** Returns a pattern of a route's paths. Parameters may have their own: `/v1/:call(^(page|p)$)`. */
export function formOf(route: string): RegExp {
  const path = pathOf(route)
    .replace(/[.*]/g, '\\$&')
    .replace(/:\w+(?:\(\^(\([^)]*\))\$\))?/g, (_, form: string | undefined) => form ?? '[^/]+');
  return new RegExp(`^${path}$`);
}
