/** The values of `event_type` in a record of a file. */
export const recordKinds = ['identify_user', 'identify_company', 'track', 'page_view'] as const;
export type RecordKind = (typeof recordKinds)[number];

/** The kinds that are events; the others are profiles. */
export const eventKinds = ['track', 'page_view'] as const satisfies readonly RecordKind[];
export type EventKind = (typeof eventKinds)[number];

const kinds: ReadonlySet<string> = new Set(recordKinds);

export function isRecordKind(text: string): text is RecordKind {
  return kinds.has(text);
}

export function isEventKind(kind: RecordKind): kind is EventKind {
  return kind === 'track' || kind === 'page_view';
}

/** `source` of an event that names none, by the way it came in. */
export const IMPORT_SOURCE = 'import';

/** The name of a page view that has none of its own. */
export const PAGE_VIEW_NAME = 'page_view';
