import { randomUUID } from 'node:crypto';
import { constants, copyFile, link, mkdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../../base/config.ts';
import { TransientError } from '../../base/errors.ts';
import { codeOf } from '../../files/disk.ts';
import type { LoadContext } from '../../load/context.ts';
import type { ConnectionMonitor } from '../../postgres/connection-monitor.ts';
import { inboxFolders } from './files.ts';

/** The context of the inbox. A `System` is one. */
export interface InboxContext extends LoadContext {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly monitor: ConnectionMonitor;
}

export interface Inbox {
  /** Absolute, without symbolic links. */
  readonly path: string;
  /** Stands in a file of the directory: the same on whichever machine it is seen. */
  readonly id: string;
}

const idName = '.sluice-inbox';
const idPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * A function that finds the inbox and its id. It makes the directory once, and never again: one that goes missing later
 * was taken away, or is a mount that was lost. Throws what the file system says then.
 */
export function createInboxOpener(directory: string): () => Promise<Inbox> {
  let made = false;
  return async () => {
    if (!made) await mkdir(directory, { recursive: true });
    made = true;
    const found = await findInbox(directory);
    if (found !== null) return found;
    await createId(join(await realpath(directory), idName));
    return readInbox(directory);
  };
}

/** The inbox as it is; null if nobody has watched it yet. */
export async function findInbox(directory: string): Promise<Inbox | null> {
  return readInbox(directory).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  });
}

async function readInbox(directory: string): Promise<Inbox> {
  const path = await realpath(directory);
  return { path, id: checked(await readFile(join(path, idName), 'utf8')) };
}

function checked(text: string): string {
  const id = text.trim();
  if (idPattern.test(id)) return id;
  throw new TransientError(`${idName} of the inbox holds no id; remove it, and one is made`);
}

/** Appears whole; whoever comes second takes the first one's. Not every file system has links. */
async function createId(path: string): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, `${randomUUID()}\n`, { flag: 'wx', mode: 0o644, flush: true });
    await link(draft, path).catch((error: unknown) => {
      if (codeOf(error) === 'EEXIST') throw error;
      return copyFile(draft, path, constants.COPYFILE_EXCL);
    });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

export const mappingName = 'mapping.yaml';
export const mappingErrorName = `${mappingName}.error`;
export const receiptSuffix = '.receipt.json';
export const rejectsSuffix = '.rejects.csv';

const loadable = /\.(?:(?:csv|ndjson|jsonl|json|parquet|xlsx|xlsm)(?:\.gz)?|zip)$/i;
/** Names that programs give to files they have not finished. */
const unfinished = /(?:\.(?:part|partial|tmp|temp|filepart|crdownload|download|inprogress|swp|lock)|~)$/i;
/** Excel keeps such a file beside a workbook that is open. */
const ownerMark = '~$';
const own: ReadonlySet<string> = new Set([mappingName, mappingErrorName, 'done', 'failed', ...inboxFolders]);

/** `loadable`: taken, if it is a file. `left`: ignored. `unknown`: ignored and logged. */
export function classifyName(name: string): 'loadable' | 'left' | 'unknown' {
  if (name.startsWith('.') || name.startsWith(ownerMark) || unfinished.test(name) || own.has(name))
    return 'left';
  return loadable.test(name) ? 'loadable' : 'unknown';
}

/** Bytes; room for what is put behind, in the 255 that file systems give a name. */
const longestPlaced = 190;

/** The names that a file may go by in done or failed: its own, or one with part of `fileId`, which no other has. */
export function placedNames(name: string, fileId: string): string[] {
  const extension = loadable.exec(name)?.[0] ?? '';
  const stem = cut(name.slice(0, name.length - extension.length), longestPlaced);
  return [`${stem}${extension}`, `${stem}-${fileId.slice(-12)}${extension}`];
}

function cut(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  // A character that was cut in two is left out.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes)).replace(/\uFFFD+$/, '');
}

const firstMs = 1_000;
const longestMs = 60_000;

/** After each failure in a row the next try waits twice as long, up to a minute. */
export class Backoff<Key> {
  readonly #failures = new Map<Key, { readonly count: number; readonly untilMs: number }>();

  isDue(key: Key): boolean {
    return (this.#failures.get(key)?.untilMs ?? 0) <= performance.now();
  }

  waiting(): Key[] {
    return [...this.#failures.keys()].filter((key) => !this.isDue(key));
  }

  failed(key: Key): number {
    const count = (this.#failures.get(key)?.count ?? 0) + 1;
    const waitMs = Math.min(firstMs * 2 ** (count - 1), longestMs);
    this.#failures.set(key, { count, untilMs: performance.now() + waitMs });
    return waitMs;
  }

  succeeded(key: Key): void {
    this.#failures.delete(key);
  }
}

/** Logs a warning once for as long as its cause lasts. */
export class Warnings {
  readonly #log: Logger;
  #logged = new Set<string>();
  #current = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  warn(path: string, why: string): void {
    const warning = JSON.stringify([path, why]);
    if (!this.#logged.has(warning) && !this.#current.has(warning)) this.#log.warn({ path }, `inbox: ${why}`);
    this.#current.add(warning);
  }

  /** Ends a look: what was not met in it is logged again when it comes back. */
  endLook(): void {
    this.#logged = this.#current;
    this.#current = new Set();
  }
}
