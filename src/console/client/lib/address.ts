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

/** Returns the address under which callers elsewhere reach something of the API. */
export function publicUrl(path: string): string {
  return location.origin + apiHref(path);
}

type Change = Readonly<Record<string, string | undefined>>;

export interface Query {
  /** Returns what stands in the address, or ''. */
  readonly get: (name: string) => string;
  /** Returns those of the names that stand in the address, with their values. */
  readonly given: (names: readonly string[]) => Readonly<Record<string, string>>;
  /** Changes the address. A filter makes an entry in the history; a row that is selected does not (`replace`). */
  readonly set: (change: Change, options?: { readonly replace?: boolean }) => void;
  /** Returns the handler of a filter: its value, from the first page of the list. */
  readonly filter: (name: string) => (value: string) => void;
  /** Returns the address with a change, for a link. */
  readonly href: (change: Change) => string;
}

/** Filters, tab and selected row, which all stand in the address: a link to the page shows the same. */
export function useQuery(): Query {
  const { path, query, route } = useLocation();
  const href = (change: Change): string => withQuery(path, change, new URLSearchParams(query));
  const set: Query['set'] = (change, { replace = false } = {}) => route(href(change), replace);
  return {
    get: (name) => query[name] ?? '',
    given: (names) => Object.fromEntries(names.flatMap((name) => (query[name] ? [[name, query[name]]] : []))),
    set,
    filter: (name) => (value) => set({ [name]: value, cursor: undefined, row: undefined }),
    href,
  };
}

/** Returns the change that takes the filters out of the address, and the page and the row that they led to. */
export function without(names: readonly string[]): Change {
  return Object.fromEntries([...names, 'cursor', 'row'].map((name) => [name, undefined]));
}

/** Returns the path of the screen that is shown, as `screens.ts` has it. */
export function useScreenPath(): string {
  const { path } = useLocation();
  return path.slice(consoleRoot.length) || '/';
}
