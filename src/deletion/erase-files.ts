import { MAX_ID_BYTES, MAX_REJECT_RAW_BYTES } from '../base/limits.ts';
import { walkPages } from '../base/pages.ts';
import { yielding } from '../base/yielding.ts';
import { JOB_EXPIRED } from '../domain/load.ts';
import { exportFolder } from '../export/context.ts';
import { markFilesExpired } from '../export/store.ts';
import { failLoad } from '../load/end.ts';
import { deleteRejects, readRejectsPage } from '../load/rejects/store.ts';
import { forgetFiles } from '../load/store.ts';
import { condemnEarlierUploads, forgetUploads } from '../load/upload-store.ts';
import { removeFiles } from '../load/uploads.ts';
import type { Attempt } from './seam.ts';
import { findKeptExports, findKeptFiles, findLoadsWithRejects, readIds, restartExports } from './store.ts';

const filesAtATime = 20;

async function whileFound<T>(
  find: () => Promise<readonly T[]>,
  remove: (rows: readonly T[]) => Promise<unknown>,
): Promise<void> {
  let rows = await find();
  while (rows.length > 0) {
    await remove(rows);
    rows = await find();
  }
}

const fileDeleted =
  'Data was deleted while the load was held, and the load would restore the data. Send the file again';

/**
 * Removes the stored files of all earlier loads, because finding the ids would require reading
 * every file. A load that is still held fails, because loading its file later would restore deleted
 * data.
 */
export function removeKeptFiles({ context, deletion, step }: Attempt): Promise<void> {
  const find = () => findKeptFiles(context.db, deletion.deletionId, filesAtATime);
  return whileFound(find, async (loads) => {
    for (const { loadId, ref, status } of loads) {
      if (status === 'held') await failLoad(context, loadId, { code: JOB_EXPIRED, message: fileDeleted });
      await context.files.remove(ref);
    }
    const loadIds = loads.map(({ loadId }) => loadId);
    await step((db) => forgetFiles(db, loadIds).then(() => ({ files: loads.length })));
  });
}

export function removeUploads({ context, deletion, step }: Attempt): Promise<void> {
  const find = () => condemnEarlierUploads(context.db, deletion.deletionId, filesAtATime);
  return whileFound(find, async (uploads) => {
    await removeFiles(context, uploads);
    await step((db) => forgetUploads(db, uploads).then(() => ({ files: uploads.length })));
  });
}

/** Restarts running exports, and removes the files of completed exports. */
export async function removeExports({ context, deletion, step }: Attempt): Promise<void> {
  const moment = await restartExports(context.db, deletion.environmentId);
  const find = () => findKeptExports(context.db, deletion.environmentId, moment, filesAtATime);
  await whileFound(find, async (exports) => {
    for (const { jobId } of exports) await context.files.removeFolder(exportFolder(jobId));
    await step(async (db) => {
      for (const { exportId } of exports) await markFilesExpired(db, exportId);
      return { exports: exports.length };
    });
  });
}

const atATime = { rows: 100, bytes: 4 * 1024 * 1024, rawBytes: MAX_REJECT_RAW_BYTES };

/** Removes rejects of earlier loads that contain an id. A new attempt checks all loads again. */
export async function deleteMatchingRejects({
  context,
  deletion,
  step,
  throwIfAborted,
}: Attempt): Promise<void> {
  const matches = createIdMatcher(await readIds(context.db, deletion.deletionId));
  for (const loadId of await findLoadsWithRejects(context.db, deletion.deletionId)) {
    const read = (after: number) => readRejectsPage(context.db, loadId, after, atATime);
    for await (const { rejects } of walkPages(0, read)) {
      throwIfAborted();
      const doomed: number[] = [];
      for await (const { raw, row } of yielding(rejects)) {
        throwIfAborted();
        if (matches(raw)) doomed.push(row);
      }
      if (doomed.length > 0) await step(async (db) => ({ rejects: await deleteRejects(db, loadId, doomed) }));
    }
  }
}

const delimiters = /[,;|\t\r\n"{}[\]:]/;
const delimiterBytes: ReadonlySet<number> = new Set(Buffer.from(',;|\t\r\n"{}[]:'));
const jsonEscape = /\\(?:u([0-9a-f]{4})|(.))/gi;
const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/**
 * Tests whether a refused record contains an id as a CSV cell or a JSON value. The record may be
 * malformed, so it is split at delimiters. A truncated record always matches. An id with a
 * delimiter matches wherever a value may begin.
 */
export function createIdMatcher(ids: readonly string[]): (raw: Uint8Array) => boolean {
  const plain = new Set(ids.filter((id) => !delimiters.test(id)));
  const composite = new CompositeIds(ids.filter((id) => delimiters.test(id)));
  return (raw) => {
    if (raw.length >= MAX_REJECT_RAW_BYTES) return true;
    const text = Buffer.from(raw).toString('utf8');
    const variants = new Set([text, text.replace(jsonEscape, unescaped), text.replaceAll('""', '"')]);
    for (const variant of variants) {
      if (hasPlain(plain, variant) || composite.isIn(Buffer.from(variant))) return true;
    }
    return false;
  };
}

function hasPlain(plain: ReadonlySet<string>, text: string): boolean {
  if (plain.size === 0) return false;
  return text.split(delimiters).some((token) => {
    const trimmed = token.trim();
    return plain.has(token) || plain.has(trimmed) || plain.has(asNumber(trimmed));
  });
}

/**
 * Ids that contain delimiters, sorted. An id that begins with another id is omitted, because the
 * shorter one matches wherever the longer one does. So a binary search finds the only id that can
 * match at a position.
 */
class CompositeIds {
  readonly #ids: readonly Buffer[];
  readonly #begins = new Uint8Array(256);

  constructor(ids: readonly string[]) {
    const sorted = ids.map((id) => Buffer.from(id)).sort(Buffer.compare);
    const shortest: Buffer[] = [];
    for (const id of sorted) {
      const last = shortest.at(-1);
      if (last === undefined || !id.subarray(0, last.length).equals(last)) shortest.push(id);
    }
    this.#ids = shortest;
    for (const id of shortest) this.#begins[id[0] ?? 0] = 1;
  }

  isIn(text: Buffer): boolean {
    if (this.#ids.length === 0) return false;
    for (let at = 0; at < text.length; at++) {
      if (this.#begins[text[at] ?? 0] === 1 && mayBegin(text, at) && this.#isAt(text, at)) return true;
    }
    return false;
  }

  #isAt(text: Buffer, at: number): boolean {
    const end = Math.min(at + MAX_ID_BYTES, text.length);
    let low = 0;
    let high = this.#ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const id = this.#ids[middle];
      if (id !== undefined && text.compare(id, 0, id.length, at, end) >= 0) low = middle + 1;
      else high = middle;
    }
    const id = this.#ids[low - 1];
    return id !== undefined && text.compare(id, 0, id.length, at, Math.min(at + id.length, end)) === 0;
  }
}

/**
 * True if a value may begin at this position. In `data:binary`, the id `a:b` is inside a word,
 * where no value begins. A value may follow a byte of 0x80 or more, because that byte may be the
 * end of a non-ASCII space.
 */
function mayBegin(text: Buffer, at: number): boolean {
  const before = text[at - 1] ?? 0;
  return before <= 0x20 || before >= 0x80 || delimiterBytes.has(before) || delimiterBytes.has(text[at] ?? 0);
}

/** Converts a number to the text that an id has after a bulk load, such as `1` for `1.0`. */
function asNumber(token: string): string {
  return /^-?\d[\d.eE+-]*$/.test(token) ? String(Number(token)) : token;
}

function unescaped(_escape: string, code: string | undefined, plain: string | undefined): string {
  if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
  return escapes[plain ?? ''] ?? plain ?? '';
}
