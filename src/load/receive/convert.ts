import { READ_BYTES } from '../../domain/limits.ts';
import { avroToNdjson } from '../../formats/avro.ts';
import { parquetToNdjson } from '../../formats/parquet.ts';
import type { ReadRange, WholeFile } from '../../formats/whole-file.ts';
import { openWorkbook } from '../../formats/workbook.ts';
import { ZipArchive } from '../../formats/zip.ts';
import { inflateGuard } from './inflate-guard.ts';

/** A file that is no text and becomes text: it is there from its first byte to its last. */
export interface Conversion {
  readonly format: 'avro' | 'parquet' | 'xlsx';
  readonly bytes: number;
  /** Of a workbook: the sheet that is wanted. */
  readonly sheet: string | undefined;
  /** What was sent for it, and what it may unpack to. */
  readonly sentBytes: number;
  readonly maxInflatedBytes: number;
}

/** The sheet of a workbook first; then its text; last what a person should know. */
export type Converted =
  | { readonly sheet: string }
  | { readonly text: Uint8Array }
  | { readonly notes: readonly string[] };

/** A stretch of the file that is converted: from its first byte to before its last. */
export type Stretch = readonly [start: number, end: number];

/** Converts a file, wherever that is done. */
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

/** The text that a file is converted to; `notes` gets what a person should know. */
export async function* textOf(converted: AsyncIterable<Converted>, notes: string[]): AsyncGenerator<Buffer> {
  for await (const item of converted) {
    if ('text' in item) yield Buffer.from(item.text.buffer, item.text.byteOffset, item.text.length);
    else if ('notes' in item) notes.push(...item.notes);
  }
}

/** Converts in this very process. @throws InputError for what cannot be read; what `read` throws. */
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
