import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import pLimit from 'p-limit';
import { READ_BYTES } from '../../domain/limits.ts';
import { expandPattern, isPattern } from '../../files/expand-pattern.ts';
import type { SourceDefinition } from './schedules-schema.ts';
import { type OpenItem, type Source, SourceFailure, type SourceItem } from './source.ts';

const filesAtATime = 8;

/** Files below `roots`, by name. A link that leads out of them is refused, as is all that is no plain file. */
export function openLocalFiles({ pattern }: SourceDefinition<'files'>, roots: readonly string[]): Source {
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
  const real = await realpath(path).catch((error: unknown) => nullIfGone(error, path));
  if (real === null) return null;
  if (!roots.some((root) => root !== null && isBelow(root, real))) {
    throw new SourceFailure('outside_roots', `${path} leads out of the folders of SCHEDULES_LOCAL_ROOTS`);
  }
  const file = await openPlain(real);
  if (file === null) return null;
  const version = await versionOf(file).finally(() => file.close());
  return { key: path, filename: basename(path), version, open: () => openFile(path, real) };
}

/** Neither a link put there meanwhile nor a pipe that nobody writes to is followed. */
async function openPlain(path: string): Promise<FileHandle | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch((error: unknown) => nullIfGone(error, path));
  if (file === null || (await file.stat()).isFile()) return file;
  await file.close();
  return null;
}

const noFile: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ENXIO']);

/** @throws SourceFailure for what is there and may not be read. */
function nullIfGone(cause: unknown, path: string): null {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (noFile.has(code)) return null;
  throw new SourceFailure('unreadable_file', `${path} cannot be read: ${code ?? message}`, { cause });
}

async function versionOf(file: FileHandle): Promise<string> {
  const { size, mtimeNs } = await file.stat({ bigint: true });
  return `${size}:${mtimeNs}`;
}

async function openFile(path: string, real: string): Promise<OpenItem> {
  const file = await openPlain(real);
  if (file === null) throw new SourceFailure('unreadable_file', `${path} is gone`, { passing: true });
  const version = await versionOf(file);
  return {
    bytes: file.createReadStream({ highWaterMark: READ_BYTES, autoClose: false }),
    version,
    hints: {},
    async check() {
      if ((await versionOf(file)) === version) return;
      throw new SourceFailure('file_changed', `${path} was written to while it was read`);
    },
    close: () => file.close(),
  };
}
