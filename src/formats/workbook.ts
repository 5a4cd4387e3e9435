import { DamagedFile, InputError, inputError } from '../domain/errors.ts';
import { SHEET_SNIFF_BYTES } from '../domain/limits.ts';
import { CsvText } from './csv-text.ts';
import { type CellContext, SheetCells } from './sheet-cells.ts';
import {
  findPart,
  type ListedSheet,
  openPart,
  type Relation,
  readRelations,
  readSharedText,
  readStyles,
  readWorkbookPart,
  type WorkbookFile,
} from './workbook-parts.ts';
import { readXml } from './xml-reader.ts';
import { listNames, shownName, type ZipArchive, type ZipMember } from './zip.ts';

/*
 * Excel workbooks (.xlsx) as CSV, a sheet at a time: UTF-8, commas, LF, quotes where they are needed; a row of the sheet that
 * is empty is an empty line, so that lines have the numbers of rows. docs/decisions/formats.md says what becomes of each kind
 * of cell. Memory holds the text that cells share, within a bound, and nothing of the rows.
 */

export interface OpenWorkbook {
  /** The sheet that is read. */
  readonly sheet: string;
  readonly csv: AsyncIterable<Buffer>;
}

/**
 * Opens the sheet that is wanted, by name or number from 1; else the first that is not hidden and has data. `notes` gets what
 * a person should know, part of it while the sheet is read.
 * @throws InputError `unsupported_format` for what is damaged or not understood, `invalid_field` for a sheet that is not
 *   there, `empty_file` if none has data; what `guard` throws. So does reading.
 */
export async function openWorkbook(
  file: WorkbookFile,
  wanted: string | undefined,
  notes: string[],
): Promise<OpenWorkbook> {
  return explained(async () => {
    const path = await findWorkbookPart(file);
    const facts = await readWorkbookPart(file, requirePart(file, path));
    const relations = await readRelations(file, path);
    const sheets = facts.sheets.flatMap((sheet) => findSheet(file, sheet, relations));
    const chosen = wanted === undefined ? await firstWithData(file, sheets) : sheetNamed(sheets, wanted);
    await noteOthers(file, sheets, chosen, notes);
    const partOf = (type: string) => {
      const relation = [...relations.values()].find((each) => each.type === type);
      return relation === undefined ? null : findPart(file, relation.path);
    };
    const context: CellContext = {
      kinds: await readStyles(file, partOf('styles')),
      shared: await readSharedText(file, partOf('sharedStrings')),
      ...facts,
    };
    return { sheet: chosen.name, csv: sheetCsv(file, chosen, context, notes) };
  });
}

/** Names the kind of an archive with the parts of an office document; null for any other. */
export function documentKind({ members }: ZipArchive): string | null {
  const has = (pattern: RegExp) => members.some(({ name }) => pattern.test(name));
  if (has(/^\[Content_Types\]\.xml$/i)) {
    if (has(/^xl\/workbook\.bin$/i)) return 'a binary Excel workbook (.xlsb)';
    if (has(/^word\//i)) return 'a Word document';
    return has(/^ppt\//i) ? 'a PowerPoint presentation' : 'workbook';
  }
  if (has(/^mimetype$/) && has(/^content\.xml$/)) return 'an OpenDocument file, such as .ods';
  return has(/^(?:Index\.zip$|Index\/.*\.iwa$)/) ? 'an Apple Numbers, Pages or Keynote document' : null;
}

async function findWorkbookPart(file: WorkbookFile): Promise<string> {
  const relations = await readRelations(file, '');
  const main = [...relations.values()].find(({ type }) => type === 'officeDocument');
  if (main === undefined) throw new DamagedFile('it does not say where its sheets are');
  return main.path;
}

function requirePart(file: WorkbookFile, path: string): ZipMember {
  const part = findPart(file, path);
  if (part === null) throw new DamagedFile(`it has no ${path}`);
  return part;
}

interface Sheet {
  readonly name: string;
  readonly isHidden: boolean;
  readonly part: ZipMember;
}

/** None for a chart or a dialog. */
function findSheet(
  file: WorkbookFile,
  { name, isHidden, relation: id }: ListedSheet,
  relations: ReadonlyMap<string, Relation>,
): Sheet[] {
  const relation = relations.get(id);
  if (relation === undefined) throw new DamagedFile(`it does not say where the sheet ${name} is`);
  return relation.type === 'worksheet' ? [{ name, isHidden, part: requirePart(file, relation.path) }] : [];
}

function sheetNamed(sheets: readonly Sheet[], wanted: string): Sheet {
  const found =
    sheets.find(({ name }) => name === wanted) ??
    sheets.find(({ name }) => name.toLowerCase() === wanted.toLowerCase()) ??
    (/^[1-9]\d{0,4}$/.test(wanted) ? sheets[Number(wanted) - 1] : undefined);
  if (found !== undefined) return found;
  const names = listNames(sheets.map(({ name }) => name));
  throw inputError('invalid_field', `The workbook has no sheet "${wanted}"; it has: ${names}`, 'sheet');
}

async function firstWithData(file: WorkbookFile, sheets: readonly Sheet[]): Promise<Sheet> {
  for (const sheet of sheets) {
    if (!sheet.isHidden && (await hasData(file, sheet))) return sheet;
  }
  throw inputError(
    'empty_file',
    'The workbook has no sheet with data',
    listNames(sheets.map(({ name }) => name)),
  );
}

async function noteOthers(
  file: WorkbookFile,
  sheets: readonly Sheet[],
  chosen: Sheet,
  notes: string[],
): Promise<void> {
  const others: string[] = [];
  for (const sheet of sheets) {
    if (sheet === chosen || !(await hasData(file, sheet))) continue;
    others.push(sheet.isHidden ? `${sheet.name} (hidden)` : sheet.name);
  }
  if (others.length === 0) return;
  notes.push(
    `Sheet "${chosen.name}" was read; other sheets have data too (sheet= reads one): ${listNames(others)}.`,
  );
}

/** Returns true if a cell has a value, or a formula. A sheet that has none in SHEET_SNIFF_BYTES is taken to have data further down. */
async function hasData(file: WorkbookFile, { part }: Sheet): Promise<boolean> {
  let found = false;
  const open = (name: string) => {
    if (name === 'v' || name === 'is' || name === 'f') found = true;
  };
  let bytes = 0;
  async function* beginning(): AsyncGenerator<Buffer> {
    for await (const piece of openPart(file, part)) {
      bytes += piece.length;
      yield piece;
    }
  }
  for await (const _ of readXml(beginning(), { open, close: () => undefined, text: () => undefined })) {
    if (found || bytes > SHEET_SNIFF_BYTES) return true;
  }
  return found;
}

async function* sheetCsv(
  file: WorkbookFile,
  { part }: Sheet,
  context: CellContext,
  notes: string[],
): AsyncGenerator<Buffer> {
  const csv = new CsvText();
  const cells = new SheetCells(context, csv);
  const pieces = readXml(openPart(file, part), cells)[Symbol.asyncIterator]();
  try {
    while ((await explained(() => pieces.next())).done !== true) yield* csv.take(false);
  } finally {
    await pieces.return(undefined);
  }
  csv.end();
  yield* csv.take(true);
  notes.push(...describeCells(cells));
}

function describeCells({ errors, noDates, merged }: SheetCells): string[] {
  const notes: string[] = [];
  const were = (count: number, what: string) => `${count} ${count === 1 ? 'cell' : 'cells'} ${what}`;
  if (errors.count > 0) {
    notes.push(
      `${were(errors.count, 'with an error such as #N/A')} read as empty, the first in ${errors.first}.`,
    );
  }
  if (noDates.count > 0) {
    notes.push(
      `${were(noDates.count, 'formatted as a date that hold none')} read as empty, the first in ${noDates.first}.`,
    );
  }
  if (merged !== '')
    notes.push(`Merged cells have their value in the first of them only, as in ${shownName(merged)}.`);
  return notes;
}

/** Explains damage to a workbook in words. */
async function explained<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof InputError || !(error instanceof DamagedFile)) throw error;
    const message = `The workbook is damaged or not understood: ${shownName(error.message)}`;
    throw Object.assign(inputError('unsupported_format', message), { cause: error });
  }
}
