/*
 * The part of tar (POSIX ustar) that backups need, so that `tar` can take them apart: plain files of up to MAX_ARCHIVE_ENTRY_BYTES,
 * each held in memory whole. Whatever else is found was not written by us.
 */
import { DamagedFile } from '../domain/errors.ts';
import { MAX_ARCHIVE_ENTRY_BYTES } from '../domain/limits.ts';

export interface TarEntry {
  readonly name: string;
  readonly content: Buffer;
}

const block = 512;
const maxNameBytes = 100;
const maxPrefixBytes = 155;

/** An entry as it stands in the file. `seconds`: its time, since 1970. */
export function tarEntry({ name, content }: TarEntry, seconds: number): Buffer[] {
  const header = Buffer.alloc(block);
  const [prefix, last] = splitName(name);
  header.write(last, 0);
  header.write('0000600\0', 100);
  header.write('0000000\0', 108);
  header.write('0000000\0', 116);
  header.write(octal(content.length, 11), 124);
  header.write(octal(seconds, 11), 136);
  header.write('        ', 148);
  header.write('0', 156);
  header.write('ustar\0' + '00', 257);
  header.write(prefix, 345);
  header.write(`${checksum(header).toString(8).padStart(6, '0')}\0 `, 148);
  return [header, content, Buffer.alloc(padding(content.length))];
}

/** The end of a file. */
export const tarEnd = Buffer.alloc(2 * block);

function octal(value: number, digits: number): string {
  return `${value.toString(8).padStart(digits, '0')}\0`;
}

function padding(bytes: number): number {
  return (block - (bytes % block)) % block;
}

/** The sum of the bytes, those of the sum itself taken as blanks. */
function checksum(header: Buffer): number {
  let sum = 0;
  for (let at = 0; at < block; at++) sum += at >= 148 && at < 156 ? 0x20 : (header[at] ?? 0);
  return sum;
}

/** The names are ours, or of a table, and short enough in two parts. */
function splitName(name: string): [prefix: string, last: string] {
  if (name.length <= maxNameBytes) return ['', name];
  const cut = name.indexOf('/', name.length - maxNameBytes - 1);
  if (cut < 1 || cut > maxPrefixBytes) throw new RangeError(`${name} is too long for tar`);
  return [name.slice(0, cut), name.slice(cut + 1)];
}

/** @throws DamagedFile */
export async function* readTar(source: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const bytes = new ByteReader(source);
  try {
    for (;;) {
      const header = await bytes.take(block);
      if (header.every((byte) => byte === 0)) {
        const rest = await bytes.take(block);
        if (!rest.every((byte) => byte === 0) || !(await bytes.atEnd()))
          throw new DamagedFile('something stands behind its end');
        return;
      }
      const { name, size } = readHeader(header);
      const content = await bytes.take(size);
      await bytes.take(padding(size));
      yield { name, content };
    }
  } finally {
    await bytes.close();
  }
}

function readHeader(header: Buffer): { name: string; size: number } {
  const text = (start: number, end: number): string => {
    const field = header.subarray(start, end);
    const zero = field.indexOf(0);
    return field.toString('utf8', 0, zero === -1 ? field.length : zero);
  };
  const number = (start: number, end: number): number => {
    const digits = text(start, end).trim();
    return /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number.NaN;
  };
  const size = number(124, 136);
  const isOurs =
    text(257, 263) === 'ustar' && text(156, 157) === '0' && number(148, 156) === checksum(header);
  if (!isOurs || !(size <= MAX_ARCHIVE_ENTRY_BYTES)) throw new DamagedFile('it is no backup of sluice');
  const prefix = text(345, 500);
  return { name: prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`, size };
}

/** Takes as many bytes as are wanted from chunks of any size. */
class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #chunk: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** A buffer of its own. */
  async take(size: number): Promise<Buffer> {
    const taken = Buffer.allocUnsafe(size);
    for (let filled = 0; filled < size; ) {
      if (this.#chunk.length === 0 && !(await this.#next())) throw new DamagedFile('it ends too early');
      const copied = this.#chunk.copy(taken, filled);
      this.#chunk = this.#chunk.subarray(copied);
      filled += copied;
    }
    return taken;
  }

  async atEnd(): Promise<boolean> {
    while (this.#chunk.length === 0) if (!(await this.#next())) return true;
    return false;
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async #next(): Promise<boolean> {
    const next = await this.#source.next();
    if (next.done === true) return false;
    this.#chunk = next.value;
    return true;
  }
}
