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
   * Returns the items in the order of loading. May omit items for which `isDone` returns true.
   * @throws SourceFailure
   */
  list(isDone: IsDone, signal: AbortSignal): Promise<readonly SourceItem[]>;
  close?(): void;
}

/** True if this run or an earlier one has loaded the version. */
export type IsDone = (key: string, version: string | null) => boolean;

export interface SourceItem {
  /** Contains no secret. */
  readonly key: string;
  readonly filename: string;
  /** A text that changes with the content. `null` if it is not known before the item is opened. */
  readonly version: string | null;
  /** `lastVersion` is the version that was loaded last. @throws SourceFailure */
  open(lastVersion: string | null, signal: AbortSignal): Promise<OpenItem | 'unchanged'>;
}

export interface OpenItem {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Version that the next run passes to `open`. `null` if there is no version. */
  readonly version: string | null;
  readonly hints: Pick<ReceiveHints, 'contentType' | 'contentEncodingGzip'>;
  readonly mayBeEmpty?: boolean;
  /** Maximum milliseconds between two bytes. Applies instead of the minimum rate of uploads. */
  readonly stallMs?: number;
  /** Must be called after the last byte. Throws if the item is incomplete. */
  check?(): Promise<void>;
  close(): Promise<void>;
}

/** If `isTransient`, a later attempt may succeed. The message contains no secret. */
export class SourceFailure extends Error {
  override readonly name = 'SourceFailure';
  readonly code: string;
  readonly isTransient: boolean;
  /** Pause that the server requests. 0 if it requests none. */
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

/** A schedule may use the variables granted to its environment. */
export const placeholders = new Placeholders('SCHEDULE_');

/**
 * Fills in the placeholders. The result may contain secrets, so it must not be logged.
 * @throws SourceFailure
 */
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

/** The items are sorted by name. Refuses links that lead out of the roots. */
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
      // A path without wildcards is not expanded, so that a failure states its reason.
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

/**
 * `null` if the file is missing.
 * @throws SourceFailure if it cannot be read
 */
function nullIfGone(cause: unknown, path: string): null {
  if (cause instanceof SourceFailure) throw cause;
  const { code, message } = cause as NodeJS.ErrnoException;
  if (noFile.has(code)) return null;
  throw new SourceFailure('unreadable_file', `${path} cannot be read: ${code ?? message}`, { cause });
}

function versionOf({ size, mtimeNs }: BigIntStats): string {
  return `${size}:${mtimeNs}`;
}

/** Refuses a link that was created meanwhile, and does not wait for the writer of a pipe. */
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
