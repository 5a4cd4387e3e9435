import { useLocation } from 'preact-iso';

/** The server writes the path prefix of a proxy into the page. */
const prefix = document.documentElement.dataset['prefix'] ?? '';
export const consoleRoot = `${prefix}/console`;

type Values = Readonly<Record<string, string | number | undefined>>;

/** Adds the values to the query of a path. Removes parameters whose value is undefined or empty. */
export function withQuery(path: string, values: Values, search = new URLSearchParams()): string {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === '') search.delete(name);
    else search.set(name, String(value));
  }
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Returns the address of a screen. `path` is the path of the screen, such as `/jobs`. */
export function screenHref(path: string, query: Values = {}): string {
  return withQuery(`${consoleRoot}${path === '/' ? '' : path}`, query);
}

export function apiHref(path: string): string {
  return prefix + path;
}

export interface Query {
  readonly get: (name: string) => string;
  /**
   * Returns the values of the parameters `names` in the address. Omits parameters without a value.
   */
  readonly given: (names: readonly string[]) => Readonly<Record<string, string>>;
  readonly set: (change: Values) => void;
  readonly go: (change: Values) => void;
  /** Changing a filter returns to the first page of the list. */
  readonly filter: (name: string) => { readonly value: string; readonly onChange: (value: string) => void };
  readonly href: (change: Values) => string;
}

/** A screen's filters, tab and selected row are in the page's address. */
export function useQuery(): Query {
  const { path, query, route } = useLocation();
  const href = (change: Values): string => withQuery(path, change, new URLSearchParams(query));
  // Another field may have changed the address since the last rendering.
  const change = (values: Values, replace: boolean): void =>
    route(withQuery(path, values, new URLSearchParams(location.search)), replace);
  const get = (name: string): string => query[name] ?? '';
  return {
    get,
    given: (names) => Object.fromEntries(names.flatMap((name) => (query[name] ? [[name, query[name]]] : []))),
    set: (values) => change(values, true),
    go: (values) => change(values, false),
    filter: (name) => ({
      value: get(name),
      onChange: (value) => change({ [name]: value, cursor: undefined, row: undefined }, false),
    }),
    href,
  };
}
