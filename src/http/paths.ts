export const consolePath = '/console';

/** Returns the path of a request as routes have it: without a query, doubled slashes and a slash at the end. */
export function pathOf(url: string): string {
  const path = url.split('?', 1)[0] ?? '';
  return path.replace(/\/+/g, '/').replace(/(?<=.)\/$/, '');
}

/** Returns the form of the paths of a route. Its parameters may have a form of their own: `/v1/:call(^(page|p)$)`. */
export function formOf(route: string): RegExp {
  const path = pathOf(route)
    .replace(/[.*]/g, '\\$&')
    .replace(/:\w+(?:\(\^(\([^)]*\))\$\))?/g, (_, form: string | undefined) => form ?? '[^/]+');
  return new RegExp(`^${path}$`);
}
