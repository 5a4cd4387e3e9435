export const consolePath = '/console';

/** Returns the path as routes write it: without a query, doubled slashes or a trailing slash. */
export function pathOf(url: string): string {
  const path = url.split('?', 1)[0] ?? '';
  return path.replace(/\/+/g, '/').replace(/(?<=.)\/$/, '');
}

/** Parameters may have patterns, as in `/v1/:call(^(page|p)$)`. */
export function formOf(route: string): RegExp {
  const path = pathOf(route)
    .replace(/[.*]/g, '\\$&')
    .replace(/:\w+(?:\(\^(\([^)]*\))\$\))?/g, (_, form: string | undefined) => form ?? '[^/]+');
  return new RegExp(`^${path}$`);
}
