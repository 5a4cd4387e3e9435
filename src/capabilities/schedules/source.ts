import { type BigIntStats, constants } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import pLimit from 'p-limit';
import { keepableText } from '../../base/errors.ts';
import { READ_BYTES } from '../../base/limits.ts';
import { expandPattern, isPattern } from '../../files/expand-pattern.ts';
import type { ReceiveHints } from '../../load/receive/receive.ts';

/* Sources of scheduled loads, and the simplest one: local files. */

export interface Source {
  /** Lists the items to load now, in order. May omit items that are done. @throws SourceFailure */
  list(isDone: IsDone, signal: AbortSignal): Promise<readonly SourceItem[]>;
  close?(): void;
}

/** Returns true if this version of an item was loaded, by this run or before. */
export type IsDone = (key: string, version: string | null) => boolean;

export interface SourceItem {
  /** Identifies the item. Contains no secret. */
  readonly key: string;
  readonly filename: string;
  /** Changes with the content. `null` if it is unknown before opening. */
  readonly version: string | null;
  /** `lastVersion` is the version loaded last. @throws SourceFailure */
  open(lastVersion: string | null, signal: AbortSignal): Promise<OpenItem | 'unchanged'>;
}

export interface OpenItem {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Version for the comparison at the next run. `null` if there is none. */
  readonly version: string | null;
  readonly hints: Pick<ReceiveHints, 'contentType' | 'contentEncodingGzip' | 'format'>;
  readonly mayBeEmpty?: boolean;
  /** Longest pause between bytes, in milliseconds. Replaces the minimum rate of uploads. */
  readonly stallMs?: number;
  /** Checks the item after the last byte. Throws if it is incomplete. */
  check?(): Promise<void>;
  close(): Promise<void>;
}

/** A source cannot be read. `passing`: it may be later. The message contains no secret. */
export class SourceFailure extends Error {
  override readonly name = 'SourceFailure';
  readonly code: string;
  readonly passing: boolean;
  /** Pause that the server requests. 0 for none. */
  readonly retryAfterMs: number;

  constructor(
    code: string,
    message: string,
    options: { readonly passing?: boolean; readonly retryAfterMs?: number; readonly cause?: unknown } = {},
  ) {
    super(keepableText(message), { cause: options.cause });
    this.code = code;
    this.passing = options.passing === true;
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }
}

/** Yields an item's bytes. Converts errors to failures of the source. */
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

/** Variables that a file may name. Others, such as DATABASE_URL, it cannot send anywhere. */
const wellFormed = /\$\{env:(SCHEDULE_[A-Z0-9_]{1,100})\}/g;

export function placeholderProblem(value: string): string | null {
  return value.replace(wellFormed, '').includes('${')
    ? 'may hold ${env:NAME} only, with a NAME that begins with SCHEDULE_'
    : null;
}

export function namedVariables(text: string): string[] {
  return [...new Set([...text.matchAll(wellFormed)].flatMap(([, name]) => name ?? []))];
}

/** Fills in each `${env:…}`. The result must not be logged. @throws SourceFailure */
export function fillIn(value: string, variables: Variables): string {
  return value.replace(wellFormed, (_, name: string) => {
    const text = variables[name];
    if (text === undefined || text === '') {
      throw new SourceFailure('missing_variable', `the environment variable ${name} is not set`);
    }
    return text;
  });
}

/** Fills in a letter for each variable, where only the shape matters. */
export function fillInAnything(value: string): string {
  return value.replace(wellFormed, 'x');
}

const filesAtATime = 8;

/** Opens plain files below `roots`, by name. Refuses links that lead out of them. */
export function openLocalFiles({ pattern }: { readonly pattern: string }, roots: readonly string[]): Source {
  return {
    async list() {
      const path = resolve(roots[0] ?? '.', pattern);
      if (!roots.some((root) => isBelow(root, path))) {
        throw new SourceFailure(
          'outside_roots',
          'the pattern leads out of the folders of SCHEDULES_LOCAL_ROOTS',
        );
      }
      const real = await Promise.all(roots.map((root) => realpath(root).catch(() => null)));
      const atATime = pLimit(filesAtATime);
      // A plain name is opened directly, so that the failure has the reason.
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

/** Returns `null` for a missing file. @throws SourceFailure for an unreadable one */
function nullIfGone(cause: unknown, path: string): null {
  if (cause instanceof SourceFailure) throw cause;
  const { code, message } = cause as NodeJS.ErrnoException;
  if (noFile.has(code)) return null;
  throw new SourceFailure('unreadable_file', `${path} cannot be read: ${code ?? message}`, { cause });
}

function versionOf({ size, mtimeNs }: BigIntStats): string {
  return `${size}:${mtimeNs}`;
}

/** Flags that follow no new link and do not wait for a pipe. */
const plainly = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

async function openFile(path: string, real: string): Promise<OpenItem> {
  const file = await open(real, plainly).catch((error: unknown) => nullIfGone(error, path));
  const stats = await file?.stat({ bigint: true });
  if (file === null || stats?.isFile() !== true) {
    await file?.close();
    throw new SourceFailure('unreadable_file', `${path} is gone`, { passing: true });
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
