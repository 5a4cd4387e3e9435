import type { LakeGroup, Texts } from '../../lake/row-group.ts';
import type { DataFile } from '../../postgres/stores/lake-files.ts';

/* Events of the lake, column by column, and the order in which those of several files come. */

/** Events of a row group. */
export interface Hits {
  readonly group: LakeGroup;
  /** Their places in the group, in the order of exports. */
  readonly rows: Int32Array;
  /** Columns that are not as the group has them, such as users by the ids that they have now. */
  readonly changed: ReadonlyMap<string, Texts>;
}

export function textsOf({ group, changed }: Hits, name: string): Texts {
  return changed.get(name) ?? group.texts(name);
}

/** Tells whether they are a row group as it is stored. */
export function isWhole({ group, rows, changed }: Hits): boolean {
  return rows.length === group.rows && changed.size === 0;
}

export function allHits(group: LakeGroup): Hits {
  return { group, rows: Int32Array.from({ length: group.rows }, (_, row) => row), changed: new Map() };
}

export function mapTexts(
  { memory, starts, ends, places }: Texts,
  change: (text: string, place: number) => string,
): Texts {
  const changed = Array.from(starts, (start, place) =>
    Buffer.from(change(memory.toString('utf8', start, ends[place]), place)),
  );
  const [newStarts, newEnds] = [new Int32Array(changed.length), new Int32Array(changed.length)];
  let at = 0;
  for (const [place, { length }] of changed.entries()) {
    newStarts[place] = at;
    at += length;
    newEnds[place] = at;
  }
  return { memory: Buffer.concat(changed), starts: newStarts, ends: newEnds, places };
}

/** A place in the order of exports. */
export interface Place {
  readonly micros: number;
  readonly id: Buffer;
  readonly user: Buffer;
}

/** Returns the place of a hit, until its group is released. What is not asked for is not unpacked. */
export function placeAt(hits: Hits, at: number): Place {
  const row = hits.rows[at] as number;
  const bytesOf = (name: string) => {
    const { memory, starts, ends, places } = textsOf(hits, name);
    const place = places[row] as number;
    return memory.subarray(starts[place], ends[place]);
  };
  return {
    micros: hits.group.micros[row] as number,
    get id() {
      return bytesOf('event_id');
    },
    get user() {
      return bytesOf('user_id');
    },
  };
}

export function comparePlaces(a: Place, b: Place): number {
  return a.micros - b.micros || Buffer.compare(a.id, b.id) || Buffer.compare(a.user, b.user);
}

/** A file that is being read, and where it is. */
interface Cursor {
  readonly source: AsyncGenerator<Hits>;
  hits: Hits;
  at: number;
}

/**
 * Merges the events of several files in the order of exports; of one that is in two of them (it came again after the first had
 * left) the first. A file is opened when its first event is due: those of different months are read one after another,
 * whatever their number. `data` is in the order of their first events. A group is released when the events after it have been taken.
 */
export async function* mergeFiles<T extends Pick<DataFile, 'firstMicros'>>(
  data: readonly T[],
  open: (file: T) => AsyncGenerator<Hits>,
): AsyncGenerator<Hits> {
  const waiting = [...data];
  let cursors: Cursor[] = [];
  let last: Place | null = null;
  let read: LakeGroup | null = null;
  const advance = async (cursor: Cursor): Promise<void> => {
    const { value, done } = await cursor.source.next();
    if (done === true) cursors = cursors.filter((each) => each !== cursor);
    else Object.assign(cursor, { hits: value, at: 0 });
  };
  const firstOf = (among: readonly Cursor[]): Cursor | undefined =>
    among.reduce<Cursor | undefined>(
      (least, cursor) =>
        least === undefined || comparePlaces(headOf(cursor), headOf(least)) < 0 ? cursor : least,
      undefined,
    );
  try {
    for (;;) {
      let first = firstOf(cursors);
      for (let file = waiting[0]; file !== undefined; file = waiting[0]) {
        if (first !== undefined && headOf(first).micros < file.firstMicros) break;
        const source = open(file);
        waiting.shift();
        const { value, done } = await source.next();
        if (done !== true) cursors.push({ source, hits: value, at: 0 });
        first = firstOf(cursors);
      }
      if (first === undefined) return;
      const { hits, at } = first;
      const next = firstOf(cursors.filter((each) => each !== first));
      const end = endOfRun(first, next && headOf(next), waiting[0]?.firstMicros ?? Number.POSITIVE_INFINITY);
      const begin = last !== null && comparePlaces(last, headOf(first)) === 0 ? at + 1 : at;
      if (begin < end) {
        yield { ...hits, rows: hits.rows.subarray(begin, end) };
        read?.release();
      }
      read = null;
      last = placeAt(hits, end - 1);
      first.at = end;
      if (end < hits.rows.length) continue;
      read = hits.group;
      await advance(first);
    }
  } finally {
    for (const { source } of cursors) await source.return(undefined);
  }
}

const headOf = ({ hits, at }: Cursor): Place => placeAt(hits, at);

/** Finds where the events end that come before those of another file. */
function endOfRun({ hits, at }: Cursor, next: Place | undefined, before: number): number {
  const { rows, group } = hits;
  const limit = Math.min(before, next?.micros ?? before);
  let end = at + 1;
  while (end < rows.length) {
    const micros = group.micros[rows[end] as number] as number;
    if (
      micros >= limit &&
      (micros >= before || next === undefined || comparePlaces(placeAt(hits, end), next) > 0)
    )
      break;
    end++;
  }
  return end;
}
