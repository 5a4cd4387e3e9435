import type { Compression, Dataset, ExportFormat } from '../../domain/export.ts';
import type { AttemptFiles, StoredFileWriter } from './attempt-files.ts';
import type { TextFormat } from './content-hash.ts';

export interface SplitOptions {
  readonly dataset: Dataset;
  readonly format: ExportFormat;
  readonly compression: Compression;
  /** A file that has come to this length is the last to get a row; a packed one is somewhat longer. */
  readonly splitBytes: number;
  /** What every file begins with. */
  readonly header: Buffer;
}

/** Rows into one file after another. There is always one, rows or not. */
export class SplitFiles implements DatasetSink {
  readonly #files: AttemptFiles;
  readonly #options: SplitOptions;
  #writer: StoredFileWriter | null = null;
  #rowsInFile = 0;
  #finished = 0;
  #finishedBytes = 0;

  constructor(files: AttemptFiles, options: SplitOptions) {
    this.#files = files;
    this.#options = options;
  }

  /** Stored so far. */
  get bytes(): number {
    return this.#finishedBytes + (this.#writer?.bytes ?? 0);
  }

  async add({ bytes, ends }: RowBlock): Promise<void> {
    let start = 0;
    for (let row = 0; row < ends.length; ) {
      const writer = await this.#current();
      const room = this.#options.splitBytes - writer.bytes;
      const first = row;
      let end = start;
      while (row < ends.length && end - start < room) end = ends[row++] ?? bytes.length;
      await writer.write(bytes.subarray(start, end));
      this.#rowsInFile += row - first;
      start = end;
      if (writer.bytes >= this.#options.splitBytes) await this.#finish(writer);
    }
  }

  async end(): Promise<void> {
    if (this.#writer !== null || this.#finished === 0) await this.#finish(await this.#current());
  }

  async #current(): Promise<StoredFileWriter> {
    if (this.#writer !== null) return this.#writer;
    const writer = await this.#files.create(this.#options.compression);
    this.#writer = writer;
    this.#rowsInFile = 0;
    if (this.#options.header.length > 0) await writer.write(this.#options.header);
    return writer;
  }

  async #finish(writer: StoredFileWriter): Promise<void> {
    const { dataset } = this.#options;
    const filename = filenameOf(this.#options, ++this.#finished);
    const { bytes } = await this.#files.finish(writer, { filename, dataset, rows: this.#rowsInFile });
    this.#finishedBytes += bytes;
    this.#writer = null;
  }
}

/** `users.ndjson.gz`, then `users-0002.ndjson.gz`. */
export function filenameOf(
  { dataset, format, compression }: Pick<SplitOptions, 'dataset' | 'format' | 'compression'>,
  number: number,
): string {
  const part = number === 1 ? '' : `-${String(number).padStart(4, '0')}`;
  return `${dataset}${part}.${format}${compression === 'gzip' ? '.gz' : ''}`;
}

/** Where the rows of a dataset go: one file, or several. */
export interface DatasetSink {
  /** Stored so far. */
  readonly bytes: number;
  /** Resolves when more may be added. */
  add(block: RowBlock): Promise<void>;
  /** To be called once, after the last row. */
  end(): Promise<void>;
}

const LF = 0x0a;
const QUOTE = 0x22;

/** Some whole rows, line ends and all. */
export interface RowBlock {
  readonly bytes: Buffer;
  /** Where each row ends, the last at the end of `bytes`. */
  readonly ends: readonly number[];
}

/** Finds the rows in what comes from COPY, or from a file it was written to. */
export async function* rowBlocks<T>(
  source: AsyncIterable<Buffer, T>,
  format: TextFormat,
): AsyncGenerator<RowBlock, T> {
  const findEnds = format === 'csv' ? csvEnds() : lineEnds;
  const iterator = source[Symbol.asyncIterator]();
  let rest: Buffer[] = [];
  try {
    for (;;) {
      const next = await iterator.next();
      if (next.done === true) {
        // A last row without its line end is none that we wrote; it is passed on all the same, for the count to be off.
        if (rest.length > 0) {
          const bytes = Buffer.concat(rest);
          yield { bytes, ends: [bytes.length] };
        }
        return next.value;
      }
      const piece = next.value;
      const ends = findEnds(piece);
      const last = ends.at(-1);
      if (last === undefined) {
        if (piece.length > 0) rest.push(piece);
        continue;
      }
      const before = rest.reduce((sum, { length }) => sum + length, 0);
      const bytes =
        before === 0 ? piece.subarray(0, last) : Buffer.concat([...rest, piece.subarray(0, last)]);
      rest = last === piece.length ? [] : [piece.subarray(last)];
      yield { bytes, ends: before === 0 ? ends : ends.map((end) => end + before) };
    }
  } finally {
    await iterator.return?.(undefined as T);
  }
}

/** JSON text holds no line break. */
function lineEnds(piece: Buffer): number[] {
  const ends: number[] = [];
  for (let at = piece.indexOf(LF); at !== -1; at = piece.indexOf(LF, at + 1)) ends.push(at + 1);
  return ends;
}

/** CSV may, within quotes; a doubled quote closes and opens. */
function csvEnds(): (piece: Buffer) => number[] {
  let quoted = false;
  return (piece) => {
    if (!quoted && !piece.includes(QUOTE)) return lineEnds(piece);
    const ends: number[] = [];
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at];
      if (byte === QUOTE) quoted = !quoted;
      else if (byte === LF && !quoted) ends.push(at + 1);
    }
    return ends;
  };
}
