import { type BigIntStats, constants } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import pLimit from 'p-limit';
import { keepableText } from '../../base/errors.ts';
import { READ_BYTES } from '../../base/limits.ts';
import { Placeholders } from '../../base/placeholders.ts';
import { expandPattern, isPattern } from '../../files/expand-pattern.ts';
import type { ReceiveHints } from '../../load/receive/receive.ts';

/* Sources of scheduled loads. The simplest source, local files, is also here. */

export const MAX_RUN_ITEMS = 1_000;

export interface Source {
  /**
   * Lists the items to load now, in order. Items for which `isDone` returns true may be omitted.
   * @throws SourceFailure
   */
  list(isDone: IsDone, signal: AbortSignal): Promise<readonly SourceItem[]>;
  close?(): void;
}

/** Returns true if a version of an item has already been loaded, by this run or an earlier one. */
export type IsDone = (key: string, version: string | null) => boolean;

export interface SourceItem {
  /** Identifies the item. Contains no secret. */
  readonly key: string;
  readonly filename: string;
  /**
   * Text that changes when the content changes. `null` if the version is not known before the item
   * is opened.
   */
  readonly version: string | null;
  /** `lastVersion` is the version that was loaded last. @throws SourceFailure */
  open(lastVersion: string | null, signal: AbortSignal): Promise<OpenItem | 'unchanged'>;
}

export interface OpenItem {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Version with which the next run compares. `null` if there is no version. */
  readonly version: string | null;
  readonly hints: Pick<ReceiveHints, 'contentType' | 'contentEncodingGzip' | 'format'>;
  readonly mayBeEmpty?: boolean;
  /**
   * Maximum pause between two bytes, in milliseconds. It applies instead of the minimum rate of
   * uploads.
   */
  readonly stallMs?: number;
  /** Checks the item after its last byte has been read. Throws if the item is incomplete. */
  check?(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Thrown if a source cannot be read. If `isTransient` is true, a later attempt may succeed. The
 * message contains no secret.
 */
export class SourceFailure extends Error {
  override readonly name = 'SourceFailure';
  readonly code: string;
  readonly isTransient: boolean;
  /** Pause requested by the server. 0 if it requests none. */
  readonly retryAfterMs: number;

  constructor(
    code: string,
    message: string,
    options: {
      readonly isTransient?: boolean;
      readonly retryAfterMs?: number;
      readonly cause?: unknown;
    } = {},
  ) {
    super(keepableText(message), { cause: options.cause });
    this.code = code;
    this.isTransient = options.isTransient === true;
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }
}

/** Converts errors of `bytes` to failures of the source. */
export async function* readItem(
  bytes: AsyncIterable<Uint8Array>,
  toFailure: (error: unknown) => SourceFailure,
): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    throw toFailure(error);
  }
}

export type Variables = Readonly<Record<string, string | undefined>>;

/** Placeholders of schedules. A schedule may use the variables granted to its environment. */
export const placeholders = new Placeholders('SCHEDULE_');

/** Replaces each `${env:…}` with its value. The result must not be logged. @throws SourceFailure */
export function fillIn(value: string, variables: Variables): string {
  return placeholders.fillIn(value, (name) => {
    const text = variables[name];
    if (text === undefined || text === '') {
      throw new SourceFailure('missing_variable', `The environment variable ${name} is not set`);
    }
    return text;
  });
}

const filesAtATime = 8;

/**
 * Opens plain files below `roots`, sorted by name. Refuses links that lead out of these folders.
 */
export function openLocalFiles({ pattern }: { readonly pattern: string }, roots: readonly string[]): Source {
  return {
    async list() {
      const path = resolve(roots[0] ?? '.', pattern);
      if (!roots.some((root) => isBelow(root, path))) {
        throw new SourceFailure(
          'outside_roots',
          'The pattern leads out of the folders of SCHEDULES_LOCAL_ROOTS',
        );
      }
      const real = await Promise.all(roots.map((root) => realpath(root).catch(() => null)));
      const atATime = pLimit(filesAtATime);
      // A path without wildcards is opened directly, so that a failure states the reason.
      const paths = isPattern(path) ? await expandPattern(path) : [path];
      const items = await Promise.all(paths.map((file) => atATime(() => inspect(file, real))));
      return items.filter((item) => item !== null);
    },
  };
}

export function isBelow(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

async function inspect(path: string, roots: readonly (string | null)[]): Promise<SourceItem | null> {
  try {
    const real = await realpath(path);
    if (!roots.some((root) => root !== null && isBelow(root, real))) {
      throw new SourceFailure('outside_roots', `${path} leads out of the folders of SCHEDULES_LOCAL_ROOTS`);
    }
    const stats = await lstat(real, { bigint: true });
    if (!stats.isFile()) return null;
    return {
      key: path,
      filename: basename(path),
      version: versionOf(stats),
      open: () => openFile(path, real),
    };
  } catch (error) {
    return nullIfGone(error, path);
  }
}

const noFile: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ENXIO']);

/** Returns `null` if the file is missing. @throws SourceFailure if the file cannot be read */
function nullIfGone(cause: unknown, path: string): null {
  if (cause instanceof SourceFailure) throw cause;
  const { code, message } = cause as NodeJS.ErrnoException;
  if (noFile.has(code)) return null;
  throw new SourceFailure('unreadable_file', `${path} cannot be read: ${code ?? message}`, { cause });
}

function versionOf({ size, mtimeNs }: BigIntStats): string {
  return `${size}:${mtimeNs}`;
}

/**
 * Flags for opening a file. They refuse a link that was created in the meantime, and do not wait
 * for the writer of a pipe.
 */
const plainly = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

async function openFile(path: string, real: string): Promise<OpenItem> {
  const file = await open(real, plainly).catch((error: unknown) => nullIfGone(error, path));
  const stats = await file?.stat({ bigint: true });
  if (file === null || stats?.isFile() !== true) {
    await file?.close();
    throw new SourceFailure('unreadable_file', `${path} is gone`, { isTransient: true });
  }
  const version = versionOf(stats);
  return {
    bytes: file.createReadStream({ highWaterMark: READ_BYTES, autoClose: false }),
    version,
    hints: {},
    async check() {
      if (versionOf(await file.stat({ bigint: true })) === version) return;
      throw new SourceFailure('file_changed', `${path} was written to while it was read`);
    },
    close: () => file.close(),
  };
}
