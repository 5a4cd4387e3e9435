import { type LoadEntity, type RecordKind, recordKinds } from '../domain/entity.ts';
import { MAX_EVENT_NAME_BYTES, MAX_EVENT_SOURCE_BYTES } from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';

/*
 * Rules for records that say in `event_type` what they are, be they CSV or JSON.
 */

const doorKind = { users: 'identify_user', companies: 'identify_company' } as const;

/** Why a load of `entity` does not take a record of this kind, or null. `kind` is null for one that there is not; `text` is what the record says. */
export function kindProblem(kind: RecordKind | null, entity: LoadEntity, text: string): Reason | null {
  const column = 'event_type';
  if (entity === 'auto') {
    if (kind !== null) return null;
    const message = `event_type is ${shown(text)}; it must be one of ${recordKinds.join(', ')}`;
    return { code: 'unknown_event_type', message, column };
  }
  if (kind === doorKind[entity]) return null;
  const message = `event_type is ${shown(text)}; this job takes ${entity} only (${doorKind[entity]})`;
  return { code: 'unexpected_event_row', message, column };
}

function shown(text: string): string {
  return text === '' ? 'empty' : text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

/** Why an event cannot have a name of so many bytes, or null. */
export function eventNameProblem(bytes: number): Reason | null {
  if (bytes === 0) {
    return { code: 'missing_event_name', message: 'event_name is missing', column: 'event_name' };
  }
  return tooLong(bytes, MAX_EVENT_NAME_BYTES, 'event_name');
}

export function eventSourceProblem(bytes: number): Reason | null {
  return tooLong(bytes, MAX_EVENT_SOURCE_BYTES, 'source');
}

function tooLong(bytes: number, maxBytes: number, column: string): Reason | null {
  if (bytes <= maxBytes) return null;
  const message = `${column} has ${bytes} bytes; at most ${maxBytes} are allowed`;
  return { code: 'value_too_large', message, column };
}

export const differentEventIds: Reason = {
  code: 'invalid_id',
  message: 'event_id and insert_id are different ids; give one, or the same',
  column: 'insert_id',
};

const urlShape =
  /^(?:[a-z][a-z\d+.-]*:)?\/\/(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^/?#:]+)(?::\d*)?([^?#]*)(\?[^#]*)?(#.*)?$/is;
const pathShape = /^(\/[^?#]*)(\?[^#]*)?(#.*)?$/s;

/**
 * Returns what a page's address says: `hostname`, `pathname`, and what follows as `search` and `hash`. Text that is no address
 * stays `url`.
 */
export function splitUrl(url: string): Readonly<Record<string, string>> {
  const [whole, hostname, path, ...rest] = urlShape.exec(url) ?? [];
  const [search, hash] = rest;
  if (whole !== undefined && hostname !== undefined) {
    const pathname = path === undefined || path === '' ? '/' : path;
    return { hostname: hostname.toLowerCase(), pathname, ...(search && { search }), ...(hash && { hash }) };
  }
  const [, pathname, pathSearch, pathHash] = pathShape.exec(url) ?? [];
  if (pathname === undefined) return { url };
  return { pathname, ...(pathSearch && { search: pathSearch }), ...(pathHash && { hash: pathHash }) };
}
