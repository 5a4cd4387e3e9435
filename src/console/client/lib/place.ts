/** What a proxy puts before every path; the server says it in the page. */
const prefix = document.documentElement.dataset['prefix'] ?? '';

/** All addresses of screens begin with it. */
export const consoleRoot = `${prefix}/console`;

/** Address of a screen, from its path as `screens.tsx` has it, such as `/jobs`. */
export function screenHref(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, value);
  }
  const text = search.toString();
  return `${consoleRoot}${path === '/' ? '' : path}${text === '' ? '' : `?${text}`}`;
}

/** Address of something of the API, from its path, such as `/v1/background_jobs`. */
export function apiHref(path: string): string {
  return prefix + path;
}

/** As a caller elsewhere writes it. */
export function publicUrl(path: string): string {
  return location.origin + apiHref(path);
}
