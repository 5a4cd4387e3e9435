import { inputError } from '../../domain/errors.ts';
import { MAX_GZIP_LAYERS, SNIFF_BYTES } from '../../domain/limits.ts';
import { gunzip, type InflateGuard, isGzip } from '../../formats/decompress.ts';
import { type FormatHints, hasDataName, unsupported } from '../../formats/detect-format.ts';
import type { WholeFile } from '../../formats/whole-file.ts';
import { documentKind } from '../../formats/workbook.ts';
import { isZip, listNames, shownName, ZipArchive, type ZipMember } from '../../formats/zip.ts';
import type { Asides } from './asides.ts';
import { type ConvertWhole, textOf } from './convert.ts';
import { inflateGuard, type Sent } from './inflate-guard.ts';
import type { Intake } from './intake.ts';
import { type Peeked, peek } from './peek.ts';

/*
 * Unpacking: gzip, and ZIP archives with one file of data in them. A workbook is a ZIP archive too, of the parts of a document;
 * it is read here as the CSV of one sheet, since nobody else needs its parts.
 */

export interface UnpackHints extends FormatHints {
  /** The request says `Content-Encoding: gzip`. */
  readonly contentEncodingGzip?: boolean | undefined;
  /** Where the file was unpacked on its way here: what was sent for it, which is what its growth is measured by. */
  readonly sent?: Sent | undefined;
}

/** What was in a ZIP archive. */
export interface Archived {
  /** The file in it; null if the archive is itself the workbook. */
  readonly member: string | null;
  /** Of a workbook: the sheet that is read. */
  readonly sheet: string | null;
  /** Grows while a workbook is read. */
  readonly notes: readonly string[];
}

export interface Unpacked {
  /** Of a workbook: its sheet as CSV. */
  readonly plain: Peeked;
  /** What is said of `plain`: of a file in an archive, its own name. */
  readonly hints: UnpackHints;
  readonly archived: Archived | null;
}

/**
 * Takes gzip and ZIP away.
 * @throws InputError `unsupported_format`, `payload_too_large`, and what `intake` and `convert` throw.
 */
export async function unpack(
  intake: Intake,
  hints: UnpackHints,
  maxInflatedBytes: number,
  asides: Asides,
  convert: ConvertWhole,
): Promise<Unpacked> {
  const guard = () => inflateGuard(hints.sent ?? intake, maxInflatedBytes);
  const sent = await peek(intake.read(), SNIFF_BYTES);
  if (hints.contentEncodingGzip === true && sent.head.length > 0 && !isGzip(sent.head)) {
    throw inputError('unsupported_format', 'The request says that its body is gzip, but it is not');
  }
  const plain = await gunzipAll(sent, guard);
  // A request that must have its array is JSON, whatever is in it.
  if (!isZip(plain.head) || hints.envelope !== undefined) return { plain, hints, archived: null };
  const file = await asides.keep(plain.all);
  const archive = await ZipArchive.open(file);
  const notes: string[] = [];
  const kind = documentKind(archive);
  if (kind !== null) return readDocument(file, convert, { kind, hints, notes, member: null });
  const member = dataMember(archive, notes);
  const unpacked = await gunzipAll(await peek(archive.read(member, guard()), SNIFF_BYTES), guard);
  const inner = { ...hints, filename: member.name, contentType: undefined };
  if (!isZip(unpacked.head))
    return {
      plain: unpacked,
      hints: inner,
      archived: { member: shownName(member.name), sheet: null, notes },
    };
  const nested = await asides.keep(unpacked.all);
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
  const sheet = first.done !== true && 'sheet' in first.value ? first.value.sheet : null;
  const rest = { [Symbol.asyncIterator]: () => converted };
  const plain = { head: Buffer.alloc(0), isWhole: false, all: textOf(rest, notes) };
  return { plain, hints, archived: { member, sheet, notes } };
}

/** What programs put into archives beside the files. */
const besides = /(?:^|\/)(?:__MACOSX\/|\.|Thumbs\.db$|desktop\.ini$)/i;

/** The one file of data: the only one, or the only one with a name that such files have. */
function dataMember({ members }: ZipArchive, notes: string[]): ZipMember {
  const files = members.filter(({ name }) => !besides.test(name));
  const data = files.length === 1 ? files : files.filter(({ name }) => hasDataName(name));
  const [first] = data;
  if (data.length === 1 && first !== undefined) {
    const others = files.filter((each) => each !== first).map(({ name }) => name);
    if (others.length > 0)
      notes.push(`Other files of the ZIP archive were passed over: ${listNames(others)}.`);
    return first;
  }
  const named = data.length > 0 ? data : files;
  const message =
    named.length === 0
      ? 'The ZIP archive has no file in it'
      : `The ZIP archive has ${named.length} files that may be the data; send each by itself, or in an archive of its own`;
  throw inputError('unsupported_format', message, listNames(named.map(({ name }) => name)));
}

async function gunzipAll(sent: Peeked, guard: () => InflateGuard): Promise<Peeked> {
  let packed = sent;
  for (let layer = 0; isGzip(packed.head); layer++) {
    if (layer === MAX_GZIP_LAYERS) throw tooDeep();
    packed = await peek(gunzip(packed.all, guard()), SNIFF_BYTES);
  }
  return packed;
}

function tooDeep(): Error {
  return inputError('unsupported_format', `The upload is packed more than ${MAX_GZIP_LAYERS} times over`);
}
