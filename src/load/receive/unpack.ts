import { inputError } from '../../base/errors.ts';
import { FILE_TOUCH_MS, MiB, SNIFF_BYTES } from '../../base/limits.ts';
import { type KeepAlive, keepAlive } from '../../base/timers.ts';
import type { FileRef, FileStore } from '../../files/file-store.ts';
import type { CsvBeginning, Sniffed } from '../../formats/csv-sniff.ts';
import { gunzip, type InflateGuard, isGzip } from '../../formats/decompress.ts';
import { type FormatHints, hasDataName, unsupported } from '../../formats/detect-format.ts';
import { parquetToNdjson } from '../../formats/parquet.ts';
import type { ReadRange, WholeFile } from '../../formats/whole-file.ts';
import { documentKind, openWorkbook } from '../../formats/workbook.ts';
import { isZip, listNames, shownName, ZipArchive, type ZipMember } from '../../formats/zip.ts';
import { type Intake, type Peeked, peek } from './intake.ts';
import type { DialectChunk, PlainChunk } from './rewrite-csv.ts';

const MAX_GZIP_LAYERS = 2;
/**
 * Maximum ratio of unpacked bytes to sent bytes. It applies once more than
 * INFLATE_RATIO_GRACE_BYTES have been unpacked. gzip can reach a ratio of about 1032.
 */
export const MAX_INFLATE_RATIO = 200;
export const INFLATE_RATIO_GRACE_BYTES = 16 * MiB;

/*
 * An archive must contain one data file, or several files of JSON lines. A workbook is also a ZIP
 * archive, and one of its sheets becomes CSV.
 */

export interface UnpackHints extends FormatHints {
  readonly contentEncodingGzip?: boolean | undefined;
  /** Counter of the sent bytes, if this file has already been unpacked once. */
  readonly sent?: ByteCounter | undefined;
}

export interface Archived {
  /** Name of the file in the archive. `null` for a workbook, or if several files were joined. */
  readonly member: string | null;
  readonly sheet: string | null;
  readonly sheets: readonly string[] | null;
  /** Remarks for the sender. More of them are added while a workbook is being read. */
  readonly notes: readonly string[];
}

export interface Unpacked {
  /** The unpacked bytes. For a workbook, these are one sheet as CSV. */
  readonly plain: Peeked;
  /** Hints for reading `plain`, with the name of the file in the archive. */
  readonly hints: UnpackHints;
  readonly archived: Archived | null;
}

/**
 * @throws InputError `unsupported_format`, `payload_too_large`, and errors from `intake` and
 * `convert`
 */
export async function unpack(
  intake: Intake,
  hints: UnpackHints,
  maxInflatedBytes: number,
  temporaryCopies: TemporaryCopies,
  convert: ConvertWhole,
): Promise<Unpacked> {
  const guard = () => inflateGuard(hints.sent ?? intake, maxInflatedBytes);
  const sent = await peek(intake.read(), SNIFF_BYTES);
  if (hints.contentEncodingGzip === true && sent.head.length > 0 && !isGzip(sent.head)) {
    throw inputError('unsupported_format', 'The request says that its body is gzip, but it is not');
  }
  const plain = await gunzipAll(sent, guard);
  // With `envelope`, the body must be JSON, even if its bytes look like a ZIP archive.
  if (!isZip(plain.head) || hints.envelope !== undefined) return { plain, hints, archived: null };
  const file = await temporaryCopies.keep(plain.all);
  const archive = await ZipArchive.open(file);
  const notes: string[] = [];
  const kind = documentKind(archive);
  if (kind !== null) return readDocument(file, convert, { kind, hints, notes, member: null });
  const [member, ...more] = dataMembers(archive, notes);
  const inner = { ...hints, filename: member.name, contentType: undefined };
  if (more.length > 0) {
    const plain = await peek(joined(archive, [member, ...more], guard()), SNIFF_BYTES);
    return { plain, hints: inner, archived: { member: null, sheet: null, sheets: null, notes } };
  }
  const unpacked = await gunzipAll(await peek(archive.read(member, guard()), SNIFF_BYTES), guard);
  if (!isZip(unpacked.head))
    return {
      plain: unpacked,
      hints: inner,
      archived: { member: shownName(member.name), sheet: null, sheets: null, notes },
    };
  const nested = await temporaryCopies.keep(unpacked.all);
  const nestedKind = documentKind(await ZipArchive.open(nested));
  if (nestedKind === null) throw unsupported(`a ZIP archive (${shownName(member.name)}) in a ZIP archive`);
  const document = { kind: nestedKind, hints: inner, notes, member: shownName(member.name) };
  return readDocument(nested, convert, document);
}

interface FoundDocument extends Pick<Unpacked, 'hints'> {
  readonly kind: string;
  readonly member: string | null;
  readonly notes: string[];
}

async function readDocument(
  file: WholeFile,
  convert: ConvertWhole,
  { kind, hints, member, notes }: FoundDocument,
): Promise<Unpacked> {
  if (kind !== 'workbook') throw unsupported(`${kind}; save it as .xlsx or CSV and send that`);
  const converted = convert('xlsx', file, hints.source?.sheet)[Symbol.asyncIterator]();
  const first = await converted.next();
  const { sheet, sheets } =
    first.done !== true && 'sheet' in first.value ? first.value : { sheet: null, sheets: null };
  const rest = { [Symbol.asyncIterator]: () => converted };
  const plain = { head: Buffer.alloc(0), isWhole: false, all: textOf(rest, notes) };
  return { plain, hints, archived: { member, sheet, sheets, notes } };
}

const besides = /(?:^|\/)(?:__MACOSX\/|\.|Thumbs\.db$|desktop\.ini$)/i;

/**
 * Names of files of JSON lines. An archive may contain several such files, for example one per
 * hour.
 */
const ofLines = /\.(?:json\.gz|(?:ndjson|jsonl)(?:\.gz)?)$/i;
const { compare: byNumber } = new Intl.Collator('en', { numeric: true });

async function* joined(
  archive: ZipArchive,
  members: readonly ZipMember[],
  guard: InflateGuard,
): AsyncGenerator<Buffer> {
  for (const member of members) {
    yield* (await gunzipAll(await peek(archive.read(member, guard), SNIFF_BYTES), () => guard)).all;
    yield Buffer.from('\n');
  }
}

/**
 * Returns the only file, or the only one with the name of a data file. If several files have such
 * names, and all contain lines, returns them sorted by name. Refuses any other archive.
 */
function dataMembers({ members }: ZipArchive, notes: string[]): [ZipMember, ...ZipMember[]] {
  const files = members.filter(({ name }) => !besides.test(name));
  const data = files.length === 1 ? files : files.filter(({ name }) => hasDataName(name));
  const [first] = data;
  const isJoined = data.length > 1 && data.every(({ name }) => ofLines.test(name));
  if (first !== undefined && (data.length === 1 || isJoined)) {
    const others = files.filter((each) => !data.includes(each)).map(({ name }) => name);
    if (others.length > 0)
      notes.push(`Other files of the ZIP archive were passed over: ${listNames(others)}.`);
    if (isJoined) notes.push(`The ZIP archive has ${data.length} files, read in the order of their names.`);
    const [earliest = first, ...later] = data.toSorted((a, b) => byNumber(a.name, b.name));
    return [earliest, ...later];
  }
  const candidates = data.length > 0 ? data : files;
  const message =
    candidates.length === 0
      ? 'The ZIP archive has no file in it'
      : `The ZIP archive has ${candidates.length} files that may be the data; send each by itself, or in an archive of its own`;
  throw inputError('unsupported_format', message, listNames(candidates.map(({ name }) => name)));
}

async function gunzipAll(sent: Peeked, guard: () => InflateGuard): Promise<Peeked> {
  let packed = sent;
  for (let layer = 0; isGzip(packed.head); layer++) {
    if (layer === MAX_GZIP_LAYERS)
      throw inputError('unsupported_format', `The upload is packed more than ${MAX_GZIP_LAYERS} times over`);
    packed = await peek(gunzip(packed.all, guard()), SNIFF_BYTES);
  }
  return packed;
}

export interface Conversion {
  readonly format: 'parquet' | 'xlsx';
  readonly bytes: number;
  readonly sheet: string | undefined;
  /** Number of sent bytes. It limits how much the file may grow when it is unpacked. */
  readonly sentBytes: number;
  readonly maxInflatedBytes: number;
}

/** A conversion yields first the sheet of a workbook, then the text, and finally notes. */
export type Converted =
  | { readonly sheet: string; readonly sheets: readonly string[] }
  | { readonly text: Uint8Array }
  | { readonly notes: readonly string[] };

export type Stretch = readonly [start: number, end: number];

export type Convert = (
  conversion: Conversion,
  read: (stretch: Stretch) => Promise<Buffer>,
  signal: AbortSignal,
) => AsyncIterable<Converted>;

export type ConvertWhole = (
  format: Conversion['format'],
  file: WholeFile,
  sheet?: string,
) => AsyncIterable<Converted>;

export async function* textOf(converted: AsyncIterable<Converted>, notes: string[]): AsyncGenerator<Buffer> {
  for await (const item of converted) {
    if ('text' in item) yield Buffer.from(item.text.buffer, item.text.byteOffset, item.text.length);
    else if ('notes' in item) notes.push(...item.notes);
  }
}

/** @throws InputError for an unreadable file, and errors from `readStretch` */
export async function* convertFile(
  { format, bytes, sheet, sentBytes, maxInflatedBytes }: Conversion,
  readStretch: (stretch: Stretch) => Promise<Buffer>,
): AsyncGenerator<Converted> {
  const read: ReadRange = (start, end) => readStretch([start, end]);
  const notes: string[] = [];
  switch (format) {
    case 'parquet':
      for await (const text of parquetToNdjson({ bytes, read }, notes)) yield { text };
      break;
    case 'xlsx': {
      const guard = inflateGuard({ receivedBytes: sentBytes }, maxInflatedBytes);
      const archive = await ZipArchive.open({ bytes, read });
      const { csv, ...workbookSheet } = await openWorkbook({ archive, guard }, sheet, notes);
      yield workbookSheet;
      for await (const text of csv) yield { text };
      break;
    }
    default:
      return format satisfies never;
  }
  yield { notes };
}

export interface ByteCounter {
  readonly receivedBytes: number;
}

/**
 * Limits the size and the growth of an upload. Growth is the size of the unpacked bytes divided by
 * the size of the sent bytes.
 */
export function inflateGuard(
  sent: ByteCounter,
  maxInflatedBytes: number,
  maxRatio = MAX_INFLATE_RATIO,
): InflateGuard {
  let inflated = 0;
  return (bytes) => {
    inflated += bytes;
    if (inflated > maxInflatedBytes) {
      throw inputError('payload_too_large', `The upload unpacks to more than ${maxInflatedBytes} bytes`);
    }
    if (inflated > INFLATE_RATIO_GRACE_BYTES && inflated > sent.receivedBytes * maxRatio) {
      const message = `The upload unpacks to more than ${maxRatio} times its size`;
      throw inputError('payload_too_large', message);
    }
  };
}

export interface ReceivingStore extends Pick<FileStore, 'create' | 'readRange' | 'remove'> {
  /**
   * Prevents the sweep from removing the file. Missing if there is no sweep. Returns false if the
   * file is gone.
   */
  readonly touch?: (ref: FileRef) => Promise<boolean>;
  /**
   * `convert`, `sniff` and `rewrite` run in a sandbox. If they are missing, this process does their
   * work.
   */
  readonly convert?: Convert;
  readonly sniff?: (sample: CsvBeginning, signal: AbortSignal) => Promise<Sniffed>;
  readonly rewrite?: (chunk: DialectChunk, signal: AbortSignal) => Promise<PlainChunk>;
}

/**
 * Copies of files that can be read only when they are complete (Parquet, ZIP). They are stored as
 * received files without a load, and touched regularly. If the process is killed, the sweep removes
 * them.
 */
export class TemporaryCopies {
  readonly #store: ReceivingStore;
  readonly #touchMs: number;
  readonly #kept: { readonly ref: FileRef; readonly touching: KeepAlive | undefined }[] = [];

  constructor(store: ReceivingStore, touchMs = FILE_TOUCH_MS) {
    this.#store = store;
    this.#touchMs = touchMs;
  }

  /** Stores a copy. If this fails, no file remains. */
  async keep(source: AsyncIterable<Buffer>): Promise<WholeFile> {
    const writer = await this.#store.create();
    let bytes = 0;
    try {
      for await (const piece of source) {
        await writer.write(piece);
        bytes += piece.length;
      }
      await writer.commit();
    } catch (error) {
      await writer.discard();
      throw error;
    }
    const { ref } = writer;
    const { touch } = this.#store;
    this.#kept.push({ ref, touching: touch && keepAlive(this.#touchMs, () => touch(ref)) });
    return { bytes, read: (start, end) => this.#store.readRange(ref, start, end) };
  }

  async removeAll(): Promise<void> {
    for (const { ref, touching } of this.#kept.splice(0)) {
      touching?.stop();
      await this.#store.remove(ref);
    }
  }
}
