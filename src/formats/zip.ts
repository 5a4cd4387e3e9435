import { crc32 } from 'node:zlib';
import yauzl from 'yauzl';
import { InputError, inputError } from '../base/errors.ts';
import { shorten } from '../base/wording.ts';
import { type InflateGuard, inflateMember } from './decompress.ts';
import { type WholeFile, WINDOW_BYTES, watched, windowed } from './whole-file.ts';

export const MAX_ZIP_MEMBERS = 10_000;
const MAX_NAMED_PARTS = 10;

/*
 * Reads ZIP archives. yauzl reads the directory at the end (with ZIP64) and ignores the headers of
 * members. Unpacked sizes are bounded. Length and CRC-32 of each member are checked. Names from an
 * archive never become names of files.
 */

export interface ZipMember {
  readonly name: string;
  readonly entry: yauzl.Entry;
}

const local = 'PK\x03\x04';

export function isZip(head: Buffer): boolean {
  return head.toString('latin1', 0, local.length) === local;
}

export class ZipArchive {
  readonly members: readonly ZipMember[];
  readonly #zip: yauzl.ZipFile;
  readonly #file: ReturnType<typeof watched>;

  private constructor(zip: yauzl.ZipFile, members: readonly ZipMember[], file: ReturnType<typeof watched>) {
    this.#zip = zip;
    this.members = members;
    this.#file = file;
  }

  /**
   * Reads the directory of an archive.
   * @throws InputError `unsupported_format` for a damaged or unknown archive. Errors from
   * `source.read` are also thrown.
   */
  static async open(source: WholeFile): Promise<ZipArchive> {
    const file = watched(source);
    const reader = new WindowedReader({ ...source, read: windowed(source.bytes, file.read) });
    try {
      const zip = await yauzl.fromRandomAccessReaderPromise(reader, source.bytes, { autoClose: false });
      if (zip.entryCount > MAX_ZIP_MEMBERS) {
        throw damaged(`it has ${zip.entryCount} members, and at most ${MAX_ZIP_MEMBERS} are read`);
      }
      const members: ZipMember[] = [];
      for await (const entry of zip.eachEntry()) {
        if (!entry.fileName.endsWith('/')) members.push({ name: entry.fileName, entry });
      }
      return new ZipArchive(zip, members, file);
    } catch (error) {
      file.rethrowFailure();
      throw explain(error);
    }
  }

  /**
   * Yields the unpacked bytes of a member.
   * @throws InputError `unsupported_format` for a password, an unknown compression, or bytes that
   * contradict the directory. Errors from `guard` and from reading are also thrown.
   */
  async *read({ name, entry }: ZipMember, guard: InflateGuard): AsyncGenerator<Buffer> {
    if (entry.isEncrypted()) throw refused(`The member ${shownName(name)} has a password`);
    const packed = this.#packed(entry);
    let bytes = 0;
    let crc = 0;
    for await (const piece of unpacked(packed, entry, guard)) {
      bytes += piece.length;
      if (bytes > entry.uncompressedSize) break;
      crc = crc32(piece, crc);
      yield piece;
    }
    if (bytes !== entry.uncompressedSize || crc !== entry.crc32) {
      throw damaged(`the member ${shownName(name)} has other bytes than it should`);
    }
  }

  async *#packed(entry: yauzl.Entry): AsyncGenerator<Buffer> {
    const { fileDataStart } = await this.#zip
      .readLocalFileHeaderPromise(entry, { minimal: true })
      .catch((error) => {
        this.#file.rethrowFailure();
        throw explain(error);
      });
    const end = fileDataStart + entry.compressedSize;
    for (let at = fileDataStart; at < end; at += WINDOW_BYTES) {
      yield await this.#file.read(at, Math.min(end, at + WINDOW_BYTES));
    }
  }
}

const STORED = 0;
const DEFLATED = 8;

function unpacked(
  packed: AsyncIterable<Buffer>,
  entry: yauzl.Entry,
  guard: InflateGuard,
): AsyncIterable<Buffer> {
  if (entry.compressionMethod === STORED) return guarded(packed, guard);
  if (entry.compressionMethod === DEFLATED) return inflateMember(packed, guard, shownName(entry.fileName));
  throw refused(
    `The member ${shownName(entry.fileName)} is packed with method ${entry.compressionMethod}; pack it with deflate, which is the default`,
  );
}

async function* guarded(pieces: AsyncIterable<Buffer>, guard: InflateGuard): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    guard(piece.length);
    yield piece;
  }
}

class WindowedReader extends yauzl.RandomAccessReader {
  readonly #source: WholeFile;

  constructor(source: WholeFile) {
    super();
    this.#source = source;
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null, bytesRead?: number) => void,
  ): void {
    if (position + length > this.#source.bytes) {
      callback(new Error('it ends early'));
      return;
    }
    this.#source.read(position, position + length).then(
      (bytes) => callback(null, bytes.copy(buffer, offset)),
      (error: Error) => callback(error),
    );
  }
}

const SHOWN_NAME_CHARS = 200;

export function shownName(name: string): string {
  return shorten(name, SHOWN_NAME_CHARS);
}

export function listNames(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMED_PARTS).map(shownName).join(', ');
  return names.length > MAX_NAMED_PARTS ? `${shown} and ${names.length - MAX_NAMED_PARTS} more` : shown;
}

function explain(error: unknown): unknown {
  if (error instanceof InputError) return error;
  const message = error instanceof Error ? shownName(error.message) : '';
  if (message.startsWith('End of central directory')) return damaged('it ends early: it has no directory');
  if (message.includes('encryption')) return refused('The ZIP archive has a password');
  return Object.assign(damaged(message), { cause: error });
}

function damaged(what: string): InputError {
  return refused(`The ZIP archive is damaged or not understood: ${what}`);
}

function refused(message: string): InputError {
  return inputError('unsupported_format', message);
}
