import { type BigIntStats, constants } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import pLimit from 'p-limit';
import { keepableText } from '../../base/errors.ts';
import { READ_BYTES } from '../../base/limits.ts';
import { expandPattern, isPattern } from '../../files/expand-pattern.ts';
import type { ReceiveHints } from '../../load/receive/receive.ts';

/* A source is what a schedule loads from. The simplest one, files of this machine, stands here as well. */

export interface Source {
  /** Lists the items to load now, in order; those already done may be left out. @throws SourceFailure */
  list(isDone: IsDone, signal: AbortSignal): Promise<readonly SourceItem[]>;
  close?(): void;
}

/** True if that version of an item was taken, by this run or before. */
export type IsDone = (key: string, version: string | null) => boolean;

export interface SourceItem {
  /** Tells it from the other items; holds no secret. */
  readonly key: string;
  readonly filename: string;
  /** Another one means other content; null: not known before it is opened. */
  readonly version: string | null;
  /** `known`: the version that was loaded last. @throws SourceFailure */
  open(known: string | null, signal: AbortSignal): Promise<OpenItem | 'unchanged'>;
}

export interface OpenItem {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** The version to compare with at the next run, or null. */
  readonly version: string | null;
  readonly hints: Pick<ReceiveHints, 'contentType' | 'contentEncodingGzip' | 'format'>;
  /** True if nothing to load is no mistake. */
  readonly mayBeEmpty?: boolean;
  /** Milliseconds that its bytes may pause; then no rate is demanded. Default: as for uploads. */
  readonly stallMs?: number;
  /** Throws if what was read is no whole item. Called when all has been read. */
  check?(): Promise<void>;
  close(): Promise<void>;
}

/** A source cannot be read. `passing`: it may be possible later. The message holds no secret. */
export class SourceFailure extends Error {
  override readonly name = 'SourceFailure';
  readonly code: string;
  readonly passing: boolean;
  /** The server asks to be left alone for so long. */
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

/** Yields the bytes of an item; what goes wrong meanwhile is a failure of its source. */
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

/** Only these can be named, so that a file cannot send DATABASE_URL somewhere. */
const wellFormed = /\$\{env:(SCHEDULE_[A-Z0-9_]{1,100})\}/g;

export function placeholderProblem(value: string): string | null {
  return value.replace(wellFormed, '').includes('${')
    ? 'may hold ${env:NAME} only, with a NAME that begins with SCHEDULE_'
    : null;
}

export function namedVariables(text: string): string[] {
  return [...new Set([...text.matchAll(wellFormed)].flatMap(([, name]) => name ?? []))];
}

/** The text with its `${env:…}` filled in: not to be logged. @throws SourceFailure */
export function fillIn(value: string, variables: Variables): string {
  return value.replace(wellFormed, (_, name: string) => {
    const found = variables[name];
    if (found === undefined || found === '') {
      throw new SourceFailure('missing_variable', `the environment variable ${name} is not set`);
    }
    return found;
  });
}

/** Like `fillIn`, where only the shape counts. */
export function fillInAnything(value: string): string {
  return value.replace(wellFormed, 'x');
}

const filesAtATime = 8;

/** Files below `roots`, by name. A link that leads out of them is refused, as is all that is no plain file. */
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
      // A plain name is opened as it is, so that the message says why it cannot be read.
      const paths = isPattern(path) ? await expandPattern(path) : [path];
      const found = await Promise.all(paths.map((file) => atATime(() => inspect(file, real))));
      return found.filter((item) => item !== null);
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

/** @throws SourceFailure for what is there and may not be read. */
function nullIfGone(cause: unknown, path: string): null {
  if (cause instanceof SourceFailure) throw cause;
  const { code, message } = cause as NodeJS.ErrnoException;
  if (noFile.has(code)) return null;
  throw new SourceFailure('unreadable_file', `${path} cannot be read: ${code ?? message}`, { cause });
}

function versionOf({ size, mtimeNs }: BigIntStats): string {
  return `${size}:${mtimeNs}`;
}

/** Follows no link that was put there meanwhile, and waits for nobody at the other end of a pipe. */
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
