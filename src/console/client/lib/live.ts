import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { api, apiHref, outagesOver, session, suspectOutage, withQuery } from './api.ts';

/*
 * One stream of server-sent events for the tab, whatever is watched. A topic first sends a snapshot, then changes; the
 * browser comes back by itself after a lost connection, with the id of the last event. A tab that nobody looks at lets go
 * of its stream: a browser opens few connections to a server at a time.
 */

/** `jobs`, `job:<job_id>`, `pulse` or `records`. */
type Topic = string;

export interface LiveEvent {
  /** Everything; else what has changed. */
  readonly snapshot: boolean;
}

type Handler = (event: LiveEvent) => void;

interface LiveState {
  /** Events come. */
  readonly isOpen: boolean;
  /** Since when the server cannot read the ledger. */
  readonly staleSince: string | null;
  /** Since when there is no connection, although something is watched. */
  readonly lostSince: string | null;
}

export const live = signal<LiveState>({ isOpen: false, staleSince: null, lostSince: null });

const handlers = new Map<Topic, Set<Handler>>();
const eventNames = ['jobs', 'job', 'pulse', 'records'] as const;
const shortestPauseMs = 2_000;
const longestPauseMs = 30_000;
const hiddenMs = 10_000;
/** A stream that is back so soon was not missed: a proxy ended it, or a server that was updated. */
const unnoticedMs = 4_000;

let source: EventSource | null = null;
let openedFor = '';
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let lossTimer: ReturnType<typeof setTimeout> | undefined;

/** Calls `onEvent` with what comes of the topic while the component is there; null watches nothing. */
export function useLive<E extends LiveEvent>(topic: Topic | null, onEvent: (event: E) => void): void {
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(() => {
    if (topic === null) return;
    const handler: Handler = (event) => latest.current(event as E);
    const known = handlers.get(topic) ?? new Set();
    handlers.set(topic, known.add(handler));
    queueMicrotask(update);
    return () => {
      known.delete(handler);
      if (known.size === 0) handlers.delete(topic);
      queueMicrotask(update);
    };
  }, [topic]);
}

/** The stream has the topics that are watched, and there is none where none is. */
function update(): void {
  const topics = document.hidden || session.peek() == null ? '' : [...handlers.keys()].sort().join(',');
  if (topics === openedFor && (source !== null || topics === '')) return;
  clearTimeout(timer);
  source?.close();
  source = null;
  openedFor = topics;
  if (topics === '') {
    forgetLoss();
    live.value = { ...live.peek(), isOpen: false };
    return;
  }
  source = open(withQuery('/v1/stream', { topics }));
}

function open(path: string): EventSource {
  const opened = new EventSource(apiHref(path));
  const on = (name: string, act: (data: unknown) => void): void =>
    opened.addEventListener(name, (event) => act(JSON.parse((event as MessageEvent<string>).data)));
  for (const name of eventNames) {
    on(name, (data) => {
      const { job_id } = data as { readonly job_id?: string };
      for (const handler of handlers.get(name === 'job' ? `job:${job_id}` : name) ?? [])
        handler(data as LiveEvent);
    });
  }
  on('ready', () => {
    failures = 0;
    forgetLoss();
    live.value = { isOpen: true, staleSince: null, lostSince: null };
  });
  on('stale', (data) => {
    const { since: staleSince } = data as { readonly since: string | null };
    live.value = { ...live.peek(), staleSince };
    if (staleSince !== null) suspectOutage();
  });
  opened.addEventListener('error', () => {
    live.value = { ...live.peek(), isOpen: false };
    keepLoss();
    suspectOutage();
    // The browser tries again by itself, unless it was refused.
    if (opened.readyState !== EventSource.CLOSED || source !== opened) return;
    source = null;
    const pause = Math.min(longestPauseMs, shortestPauseMs * 2 ** failures++);
    timer = setTimeout(() => void retry(), pause);
  });
  return opened;
}

function keepLoss(): void {
  if (lossTimer !== undefined || live.peek().lostSince !== null) return;
  const lostSince = new Date().toISOString();
  lossTimer = setTimeout(() => {
    live.value = { ...live.peek(), lostSince };
  }, unnoticedMs);
}

function forgetLoss(): void {
  clearTimeout(lossTimer);
  lossTimer = undefined;
  if (live.peek().lostSince !== null) live.value = { ...live.peek(), lostSince: null };
}

/** A stream is not told why it was refused: whether somebody is still signed in is asked first. */
async function retry(): Promise<void> {
  await api('/v1/console/session').catch(() => undefined);
  update();
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) update();
  else setTimeout(() => document.hidden && update(), hiddenMs);
});
session.subscribe(() => queueMicrotask(update));
outagesOver.subscribe(() => queueMicrotask(update));
