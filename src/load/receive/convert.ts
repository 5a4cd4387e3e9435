import { READ_BYTES } from '../../domain/limits.ts';
import { avroToNdjson } from '../../formats/avro.ts';
import { parquetToNdjson } from '../../formats/parquet.ts';
import type { ReadRange, WholeFile } from '../../formats/whole-file.ts';
import { openWorkbook } from '../../formats/workbook.ts';
import { ZipArchive } from '../../formats/zip.ts';
import { inflateGuard } from './inflate-guard.ts';

/** A complete file that is not text and is converted to text. */
export interface Conversion {
  readonly format: 'avro' | 'parquet' | 'xlsx';
  readonly bytes: number;
  /** The sheet to read, for a workbook. */
  readonly sheet: string | undefined;
  /** The bytes that were sent for it, and the size that it may unpack to. */
  readonly sentBytes: number;
  readonly maxInflatedBytes: number;
}

/** An item of a conversion: first the sheet of a workbook, then its text, last the notes for the job. */
export type Converted =
  | { readonly sheet: string }
  | { readonly text: Uint8Array }
  | { readonly notes: readonly string[] };

/** A stretch is a byte range of the file, without the byte at `end`. */
export type Stretch = readonly [start: number, end: number];

/** Converts a file, in this process or in a sandbox. */
export type Convert = (
  conversion: Conversion,
  read: (stretch: Stretch) => Promise<Buffer>,
  signal: AbortSignal,
) => AsyncIterable<Converted>;

/** Converts a whole file; what else must be known is known. */
export type ConvertWhole = (
  format: Conversion['format'],
  file: WholeFile,
  sheet?: string,
) => AsyncIterable<Converted>;

/** Yields the text that a file is converted to; `notes` receives the notes for the job. */
export async function* textOf(converted: AsyncIterable<Converted>, notes: string[]): AsyncGenerator<Buffer> {
  for await (const item of converted) {
    if ('text' in item) yield Buffer.from(item.text.buffer, item.text.byteOffset, item.text.length);
    else if ('notes' in item) notes.push(...item.notes);
  }
}

/** Converts in this process. @throws InputError for a file that cannot be read; whatever `read` throws. */
export async function* convertFile(
  { format, bytes, sheet, sentBytes, maxInflatedBytes }: Conversion,
  readStretch: (stretch: Stretch) => Promise<Buffer>,
): AsyncGenerator<Converted> {
  const read: ReadRange = (start, end) => readStretch([start, end]);
  const notes: string[] = [];
  switch (format) {
    case 'avro':
      for await (const text of avroToNdjson(inOrder(bytes, read), notes)) yield { text };
      break;
    case 'parquet':
      for await (const text of parquetToNdjson({ bytes, read }, notes)) yield { text };
      break;
    case 'xlsx': {
      const guard = inflateGuard({ receivedBytes: sentBytes }, maxInflatedBytes);
      const archive = await ZipArchive.open({ bytes, read });
      const opened = await openWorkbook({ archive, guard }, sheet, notes);
      yield { sheet: opened.sheet };
      for await (const text of opened.csv) yield { text };
      break;
    }
    default:
      return format satisfies never;
  }
  yield { notes };
}

async function* inOrder(bytes: number, read: ReadRange): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes; at += READ_BYTES) yield await read(at, Math.min(bytes, at + READ_BYTES));
}
