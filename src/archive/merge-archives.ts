import type { FileStore } from '../files/file-store.ts';
import type { Archive } from '../postgres/retention/archives.ts';
import { type ArchivedEvent, readArchive } from './read-archive.ts';

/** A file that is being read. */
interface Cursor {
  readonly groups: AsyncGenerator<ArchivedEvent[]>;
  group: readonly ArchivedEvent[];
  at: number;
  head: ArchivedEvent;
}

/**
 * The events of several files in the order of exports: by time, then by id. Of an event that is in two of them (it came
 * again after the first had been archived) the first. A file is opened when its first event is due: those of different
 * months are read one after another, whatever their number. `archives` are in the order of their first events.
 */
export async function* mergeArchives(
  files: FileStore,
  archives: readonly Archive[],
): AsyncGenerator<ArchivedEvent> {
  const waiting = archives[Symbol.iterator]();
  let next = waiting.next();
  let open: Cursor[] = [];
  let last: ArchivedEvent | null = null;
  try {
    for (;;) {
      let first = leastOf(open);
      while (next.done !== true && (first === undefined || next.value.firstMicros <= first.head.micros)) {
        const cursor = await openCursor(files, next.value);
        if (cursor !== null) open.push(cursor);
        next = waiting.next();
        first = leastOf(open);
      }
      if (first === undefined) return;
      const event = first.head;
      if (last === null || compareEvents(last, event) !== 0) yield event;
      last = event;
      const { done } = first.at < first.group.length ? advance(first) : await nextGroup(first);
      if (done) open = open.filter((each) => each !== first);
    }
  } finally {
    for (const { groups } of open) await groups.return(undefined);
  }
}

async function openCursor(files: FileStore, archive: Archive): Promise<Cursor | null> {
  const groups = readArchive(files, archive);
  const { value: group = [], done } = await groups.next();
  const [head] = group;
  return done === true || head === undefined ? null : { groups, group, at: 1, head };
}

function advance(cursor: Cursor): { done: boolean } {
  const head = cursor.group[cursor.at++];
  if (head === undefined) return { done: true };
  cursor.head = head;
  return { done: false };
}

async function nextGroup(cursor: Cursor): Promise<{ done: boolean }> {
  const { value, done } = await cursor.groups.next();
  if (done === true) return { done };
  cursor.group = value;
  cursor.at = 0;
  return advance(cursor);
}

function leastOf(open: readonly Cursor[]): Cursor | undefined {
  let least = open[0];
  for (const cursor of open) {
    if (least !== undefined && compareEvents(cursor.head, least.head) < 0) least = cursor;
  }
  return least;
}

/** Ids as PostgreSQL compares them: byte by byte. */
function compareEvents(a: ArchivedEvent, b: ArchivedEvent): number {
  if (a.micros !== b.micros) return a.micros - b.micros;
  return a.event_id === b.event_id ? 0 : Buffer.compare(Buffer.from(a.event_id), Buffer.from(b.event_id));
}
