import { useLocation } from 'preact-iso';
import { consoleRoot } from './place.ts';

type Change = Readonly<Record<string, string | undefined>>;

export interface Query {
  /** What stands in the address; '' for what does not. */
  readonly get: (name: string) => string;
  /** Changes the address. A filter makes an entry in the history; a row that is selected does not (`replace`). */
  readonly set: (change: Change, options?: { readonly replace?: boolean }) => void;
  /** The address with a change, for a link. */
  readonly href: (change: Change) => string;
}

/** Filters, tab and selected row, which all stand in the address: a link to the page shows the same. */
export function useQuery(): Query {
  const { path, query, route } = useLocation();
  const href = (change: Change): string => {
    const search = new URLSearchParams(query);
    for (const [name, value] of Object.entries(change)) {
      if (value === undefined || value === '') search.delete(name);
      else search.set(name, value);
    }
    const text = search.toString();
    return text === '' ? path : `${path}?${text}`;
  };
  return {
    get: (name) => query[name] ?? '',
    set: (change, { replace = false } = {}) => route(href(change), replace),
    href,
  };
}

/** The path of the screen that is shown, as `screens.tsx` has it. */
export function useScreenPath(): string {
  const { path } = useLocation();
  const own = path.slice(consoleRoot.length);
  return own === '' ? '/' : own;
}
