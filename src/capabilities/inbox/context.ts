import { randomUUID } from 'node:crypto';
import { constants, copyFile, link, mkdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../../base/config.ts';
import { TransientError } from '../../base/errors.ts';
import { growing } from '../../base/retry.ts';
import { codeOf } from '../../files/disk.ts';
import type { LoadContext } from '../../load/context.ts';
import type { ConnectionMonitor } from '../../postgres/connection-monitor.ts';
import { inboxFolders } from './files.ts';

export interface InboxContext extends LoadContext {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly monitor: ConnectionMonitor;
}

export interface Inbox {
  /** Absolute path without symbolic links. */
  readonly path: string;
  /** Id of the inbox, stored in a file in the directory. Every machine reads the same id. */
  readonly id: string;
}

const idName = '.sluice-inbox';
const idPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Returns a function that opens the inbox. Only its first call creates the directory. If the
 * directory is missing later, its mount may have been lost, so the call throws.
 */
export function createInboxOpener(directory: string): () => Promise<Inbox> {
  let isMade = false;
  return async () => {
    if (!isMade) await mkdir(directory, { recursive: true });
    isMade = true;
    const inbox = await findInbox(directory);
    if (inbox !== null) return inbox;
    await createId(join(await realpath(directory), idName));
    return readInbox(directory);
  };
}

/** Returns `null` if no process has watched the inbox yet. */
export async function findInbox(directory: string): Promise<Inbox | null> {
  return readInbox(directory).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  });
}

async function readInbox(directory: string): Promise<Inbox> {
  const path = await realpath(directory);
  return { path, id: parseId(await readFile(join(path, idName), 'utf8')) };
}

function parseId(text: string): string {
  const id = text.trim();
  if (idPattern.test(id)) return id;
  throw new TransientError(`${idName} of the inbox holds no id; remove it, and one is made`);
}

/**
 * Creates the file with the id of the inbox, but leaves an existing file unchanged. A link makes
 * the complete file appear at once. On file systems without links, the file is copied instead.
 */
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
const unfinished = /(?:\.(?:part|partial|tmp|temp|filepart|crdownload|download|inprogress|swp|lock)|~)$/i;
/** Prefix of the file that Excel creates next to an open workbook. */
const ownerMark = '~$';
const reservedNames: ReadonlySet<string> = new Set([
  mappingName,
  mappingErrorName,
  'done',
  'failed',
  ...inboxFolders,
]);

/** `loadable`: the name of a file to load. `left`: ignored. `unknown`: ignored with a warning. */
export function classifyName(name: string): 'loadable' | 'left' | 'unknown' {
  if (name.startsWith('.') || name.startsWith(ownerMark) || unfinished.test(name) || reservedNames.has(name))
    return 'left';
  return loadable.test(name) ? 'loadable' : 'unknown';
}

/**
 * Maximum length of a moved file's name in bytes, without the extension. File systems allow 255
 * bytes, and the suffix of a receipt must also fit.
 */
const longestPlaced = 190;

export function placedNames(name: string, fileId: string): string[] {
  const extension = loadable.exec(name)?.[0] ?? '';
  const stem = cut(name.slice(0, name.length - extension.length), longestPlaced);
  return [`${stem}${extension}`, `${stem}-${fileId.slice(-12)}${extension}`];
}

function cut(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  // Drops the last character if it was cut in two.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes)).replace(/\uFFFD+$/, '');
}

const pauseMs = growing(1_000, 60_000);

/** Each consecutive failure doubles the delay, up to a minute. */
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
    const waitMs = pauseMs(count);
    this.#failures.set(key, { count, untilMs: performance.now() + waitMs });
    return waitMs;
  }

  succeeded(key: Key): void {
    this.#failures.delete(key);
  }
}

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

  /**
   * Ends a look at the inbox. A warning that recurs in every look is logged only once. A warning
   * that did not recur in this look is forgotten.
   */
  endLook(): void {
    this.#logged = this.#current;
    this.#current = new Set();
  }
}
