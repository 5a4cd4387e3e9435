import { DamagedFile, inputError } from '../base/errors.ts';
import { KiB, MAX_SHEET_NAME_CHARS } from '../base/limits.ts';
import { CsvText } from './csv-text.ts';
import type { InflateGuard } from './decompress.ts';
import { type CellContext, SharedTextReader, SheetCells } from './sheet-cells.ts';
import { kindOfFormat, type NumberKind } from './workbook-numbers.ts';
import { type NamespaceOf, readXml, type XmlAttributes, type XmlHandler } from './xml-reader.ts';
import { listNames, shownName, type ZipArchive, type ZipMember } from './zip.ts';

/**
 * Maximum number of sheets or relations, maximum number of styles, and the number of bytes in which
 * a sheet is searched for data.
 */
export const MAX_SHEETS = 1_000;
const MAX_WORKBOOK_STYLES = 100_000;
const SHEET_SNIFF_BYTES = 256 * KiB;

/*
 * Converts Excel workbooks (.xlsx) to CSV, one sheet at a time: UTF-8, commas, LF, quotes where
 * needed. Line numbers are row numbers, because an empty row becomes an empty line. Only the shared
 * strings, whose size is bounded, are in memory. Kinds of cells: docs/files.md.
 */

interface WorkbookFile {
  readonly archive: ZipArchive;
  readonly guard: InflateGuard;
}

interface OpenWorkbook {
  readonly sheet: string;
  readonly sheets: readonly string[];
  readonly csv: AsyncIterable<Buffer>;
}

/**
 * Opens the sheet of this name or number (from 1), or the first visible sheet with data. Adds
 * `notes` for the user once the sheet has been read.
 * @throws InputError `unsupported_format` for a damaged or unknown file, `invalid_field` for a
 * missing sheet, `empty_file` if all sheets are empty. Errors from `guard` are also thrown. Reading
 * `csv` throws the same errors.
 */
export async function openWorkbook(
  file: WorkbookFile,
  choice: string | undefined,
  notes: string[],
): Promise<OpenWorkbook> {
  try {
    const main = (await readRelations(file, '')).find(({ type }) => type === 'officeDocument');
    if (main === undefined) throw new DamagedFile('it does not say where its sheets are');
    const { sheets: listedSheets, ...calendar } = await readMainPart(file, requirePart(file, main.path));
    const relations = await readRelations(file, main.path);
    const sheets = listedSheets.flatMap((sheet) => findSheet(file, sheet, relations));
    const sheet = choice === undefined ? await firstWithData(file, sheets) : sheetNamed(sheets, choice);
    const partOf = (type: string) => {
      const relation = relations.find((each) => each.type === type);
      return relation === undefined ? null : findPart(file, relation.path);
    };
    const shared = new SharedTextReader();
    await readPart(file, partOf('sharedStrings'), shared);
    const kinds = await readStyles(file, partOf('styles'));
    const csv = sheetCsv(file, sheet, { ...calendar, kinds, shared: shared.texts }, notes);
    return { sheet: sheet.name, sheets: sheets.map(({ name }) => name), csv };
  } catch (error) {
    throw inWords(error);
  }
}

export function documentKind({ members }: ZipArchive): string | null {
  const has = (pattern: RegExp) => members.some(({ name }) => pattern.test(name));
  if (has(/^\[Content_Types\]\.xml$/i)) {
    if (has(/^xl\/workbook\.bin$/i)) return 'a binary Excel workbook (.xlsb)';
    return has(/^(?:word|ppt)\//i) ? 'a document without sheets' : 'workbook';
  }
  if (has(/^mimetype$/) && has(/^content\.xml$/)) return 'an OpenDocument file, such as .ods';
  return has(/^(?:Index\.zip$|Index\/.*\.iwa$)/) ? 'an Apple Numbers, Pages or Keynote document' : null;
}

/*
 * A part of a workbook refers to another part by an id. A third part translates the id to a path.
 */

/** Finds a part by its path. Paths begin with a slash and are not case-sensitive. */
function findPart({ archive }: WorkbookFile, path: string): ZipMember | null {
  const lowerCase = path.slice(1).toLowerCase();
  return archive.members.find(({ name }) => name.toLowerCase() === lowerCase) ?? null;
}

function requirePart(file: WorkbookFile, path: string): ZipMember {
  const part = findPart(file, path);
  if (part === null) throw new DamagedFile(`it has no ${path}`);
  return part;
}

async function readPart(
  { archive, guard }: WorkbookFile,
  part: ZipMember | null,
  handler: XmlHandler,
): Promise<void> {
  if (part !== null) for await (const _ of readXml(archive.read(part, guard), handler));
}

interface Relation {
  readonly id: string;
  /** Last word of the relation's type, such as `worksheet`. */
  readonly type: string;
  readonly path: string;
}

/** Reads the relations of a part. An empty `path` means the archive itself. */
async function readRelations(file: WorkbookFile, path: string): Promise<readonly Relation[]> {
  const slash = path.lastIndexOf('/');
  const folder = path.slice(0, Math.max(0, slash));
  const relations: Relation[] = [];
  const open = (name: string, { Id: id, Type: type, Target: target, TargetMode: mode }: XmlAttributes) => {
    if (name !== 'Relationship' || mode === 'External' || !id || !type || !target) return;
    if (relations.length === MAX_SHEETS)
      throw new DamagedFile(`a part of it has more than ${MAX_SHEETS} relations`);
    relations.push({ id, type: type.slice(type.lastIndexOf('/') + 1), path: resolve(folder, target) });
  };
  await readPart(file, findPart(file, `${folder}/_rels/${path.slice(slash + 1)}.rels`), { open });
  return relations;
}

/** The absolute path is always inside the archive. */
function resolve(folder: string, target: string): string {
  const steps = target.startsWith('/') ? [] : folder.split('/').filter((step) => step !== '');
  for (const step of target.split('/')) {
    if (step === '..') steps.pop();
    else if (step !== '' && step !== '.') steps.push(step);
  }
  return `/${steps.join('/')}`;
}

interface ListedSheet {
  readonly name: string;
  readonly relation: string;
  readonly isHidden: boolean;
}

interface MainPart extends Pick<CellContext, 'from1904' | 'isUncalculated'> {
  readonly sheets: readonly ListedSheet[];
}

async function readMainPart(file: WorkbookFile, part: ZipMember): Promise<MainPart> {
  const sheets: ListedSheet[] = [];
  let root = '';
  let from1904 = false;
  let isUncalculated = false;
  const open = (name: string, attributes: XmlAttributes, namespaceOf: NamespaceOf) => {
    root ||= name;
    if (name === 'workbookPr') from1904 ||= isTrue(attributes['date1904']);
    else if (name === 'calcPr') isUncalculated ||= isTrue(attributes['fullCalcOnLoad']);
    else if (name === 'sheet') {
      if (sheets.length === MAX_SHEETS) throw new DamagedFile(`it has more than ${MAX_SHEETS} sheets`);
      const { name: title = '', state = 'visible' } = attributes;
      if (title.length > MAX_SHEET_NAME_CHARS) throw new DamagedFile(`a sheet has the name ${title}`);
      const isHidden = state !== 'visible';
      sheets.push({ name: title, relation: relationOf(attributes, namespaceOf), isHidden });
    }
  };
  await readPart(file, part, { open });
  if (root !== 'workbook') throw new DamagedFile('it is another kind of document');
  return { sheets, from1904, isUncalculated };
}

function isTrue(value: string | undefined): boolean {
  return value === '1' || value === 'true';
}

/**
 * Returns the attribute `r:id`. Its prefix may differ, so the namespace of the prefix is checked.
 * Strict workbooks have another namespace, which also ends in `relationships`.
 */
function relationOf(attributes: XmlAttributes, namespaceOf: NamespaceOf): string {
  const entry = Object.entries(attributes).find(
    ([name]) => name.endsWith(':id') && /\/relationships$/.test(namespaceOf(name.slice(0, -':id'.length))),
  );
  return entry?.[1] ?? '';
}

async function readStyles(file: WorkbookFile, part: ZipMember | null): Promise<readonly NumberKind[]> {
  const codes = new Map<number, string>();
  const kinds: NumberKind[] = [];
  let list = '';
  const open = (name: string, { numFmtId: id = '0', formatCode: code = '' }: XmlAttributes) => {
    if (name === 'numFmts' || name === 'cellXfs') list = name;
    else if (name === 'numFmt' && list === 'numFmts') codes.set(Number(id), code);
    else if (name === 'xf' && list === 'cellXfs') kinds.push(kindOfFormat(Number(id), codes));
    if (codes.size + kinds.length > MAX_WORKBOOK_STYLES) throw new DamagedFile('it has too many styles');
  };
  const close = (name: string) => {
    if (name === list) list = '';
  };
  await readPart(file, part, { open, close });
  return kinds;
}

interface Sheet {
  readonly name: string;
  readonly isHidden: boolean;
  readonly part: ZipMember;
}

/** Returns the sheet as the only item, or no item for a chart or a dialog. */
function findSheet(
  file: WorkbookFile,
  { name, isHidden, relation: relationId }: ListedSheet,
  relations: readonly Relation[],
): Sheet[] {
  const relation = relations.find(({ id }) => id === relationId);
  if (relation === undefined) throw new DamagedFile(`it does not say where the sheet ${name} is`);
  return relation.type === 'worksheet' ? [{ name, isHidden, part: requirePart(file, relation.path) }] : [];
}

function sheetNamed(sheets: readonly Sheet[], choice: string): Sheet {
  const sheet =
    sheets.find(({ name }) => name === choice) ??
    sheets.find(({ name }) => name.toLowerCase() === choice.toLowerCase()) ??
    (/^[1-9]\d{0,4}$/.test(choice) ? sheets[Number(choice) - 1] : undefined);
  if (sheet !== undefined) return sheet;
  const names = listNames(sheets.map(({ name }) => name));
  throw inputError('invalid_field', `The workbook has no sheet "${choice}"; it has: ${names}`, 'sheet');
}

async function firstWithData(file: WorkbookFile, sheets: readonly Sheet[]): Promise<Sheet> {
  for (const sheet of sheets) {
    if (!sheet.isHidden && (await hasData(file, sheet))) return sheet;
  }
  const names = listNames(sheets.map(({ name }) => name));
  throw inputError('empty_file', 'The workbook has no sheet with data', names);
}

/**
 * True if the first SHEET_SNIFF_BYTES of the sheet have a value or formula, or if the sheet is
 * longer and may therefore have one.
 */
async function hasData({ archive, guard }: WorkbookFile, { part }: Sheet): Promise<boolean> {
  let hasContent = false;
  let bytes = 0;
  const count: InflateGuard = (length) => {
    guard(length);
    bytes += length;
  };
  const open = (name: string) => {
    hasContent ||= name === 'v' || name === 'is' || name === 'f';
  };
  for await (const _ of readXml(archive.read(part, count), { open })) {
    if (hasContent || bytes > SHEET_SNIFF_BYTES) return true;
  }
  return hasContent;
}

async function* sheetCsv(
  { archive, guard }: WorkbookFile,
  { part }: Sheet,
  context: CellContext,
  notes: string[],
): AsyncGenerator<Buffer> {
  const csv = new CsvText();
  const cells = new SheetCells(context, csv);
  try {
    for await (const _ of readXml(archive.read(part, guard), cells)) yield* csv.take(false);
  } catch (error) {
    throw inWords(error);
  }
  csv.end();
  yield* csv.take(true);
  notes.push(...describeCells(cells));
}

function describeCells({ errors, noDates, merged }: SheetCells): string[] {
  const were = ({ count, first }: SheetCells['errors'], what: string) =>
    count === 0
      ? []
      : [`${count} ${count === 1 ? 'cell' : 'cells'} ${what} read as empty, the first in ${first}.`];
  return [
    ...were(errors, 'with an error such as #N/A'),
    ...were(noDates, 'formatted as a date that hold none'),
    ...(merged === ''
      ? []
      : [`Merged cells have their value in the first of them only, as in ${shownName(merged)}.`]),
  ];
}

function inWords(error: unknown): unknown {
  if (!(error instanceof DamagedFile)) return error;
  const message = `The workbook is damaged or not understood: ${shownName(error.message)}`;
  return Object.assign(inputError('unsupported_format', message), { cause: error });
}
