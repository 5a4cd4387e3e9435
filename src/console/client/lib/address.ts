/* The address of the page and of what the console links to. */
import { useLocation } from 'preact-iso';

/** The prefix that a proxy puts before every path; the server writes it into the page. */
const prefix = document.documentElement.dataset['prefix'] ?? '';
/** Begins the address of every screen. */
export const consoleRoot = `${prefix}/console`;

type Values = Readonly<Record<string, string | number | undefined>>;

/** Returns the path with a query; values that are undefined or empty are left out. */
export function withQuery(path: string, values: Values, search = new URLSearchParams()): string {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === '') search.delete(name);
    else search.set(name, String(value));
  }
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Returns the address of a screen from its path in `screens.ts`, such as `/jobs`. */
export function screenHref(path: string, query: Values = {}): string {
  return withQuery(`${consoleRoot}${path === '/' ? '' : path}`, query);
}

/** Returns the address of something of the API from its path, such as `/v1/background_jobs`. */
export function apiHref(path: string): string {
  return prefix + path;
}

export interface Query {
  /** Returns what stands in the address, or ''. */
  readonly get: (name: string) => string;
  /** Returns those of the names that stand in the address, with their values. */
  readonly given: (names: readonly string[]) => Readonly<Record<string, string>>;
  /** Changes the address, without an entry in the history. */
  readonly set: (change: Values) => void;
  /** Changes the address, as a link does. */
  readonly go: (change: Values) => void;
  /** Returns value and handler of a filter, which leads to the first page of the list. */
  readonly filter: (name: string) => { readonly value: string; readonly onChange: (value: string) => void };
  /** Returns the address with a change, for a link. */
  readonly href: (change: Values) => string;
}

/** Filters, tab and selected row, which all stand in the address: a link to the page shows the same. */
export function useQuery(): Query {
  const { path, query, route } = useLocation();
  const href = (change: Values): string => withQuery(path, change, new URLSearchParams(query));
  // A field that loses the focus and a row that gets it both change the address before the page is drawn again.
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
