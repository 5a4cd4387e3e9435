import { DamagedFile } from '../domain/errors.ts';
import { MAX_CELL_CHARS, MAX_SHEET_NAME_CHARS, MAX_SHEETS, MAX_WORKBOOK_STYLES } from '../domain/limits.ts';
import { csvCell } from './csv-text.ts';
import type { InflateGuard } from './decompress.ts';
import { SharedText } from './shared-text.ts';
import { unescapeText } from './sheet-cells.ts';
import { kindOfFormat, type NumberKind } from './workbook-numbers.ts';
import { type NamespaceOf, readXml, type XmlAttributes, type XmlHandler } from './xml-reader.ts';
import type { ZipArchive, ZipMember } from './zip.ts';

/* The parts of a workbook beside its sheets. A part names another by an id, which a third part translates to a path. */

/** A workbook's archive, and the bound on what is unpacked of it. */
export interface WorkbookFile {
  readonly archive: ZipArchive;
  readonly guard: InflateGuard;
}

export function openPart({ archive, guard }: WorkbookFile, part: ZipMember): AsyncGenerator<Buffer> {
  return archive.read(part, guard);
}

/** Paths begin with a slash; capital letters are equal to small ones. */
export function findPart({ archive }: WorkbookFile, path: string): ZipMember | null {
  const sought = path.slice(1).toLowerCase();
  return archive.members.find(({ name }) => name.toLowerCase() === sought) ?? null;
}

/** Reads a part whole, for its handler. */
async function readPart(file: WorkbookFile, part: ZipMember, handler: Partial<XmlHandler>): Promise<void> {
  const ignore = () => undefined;
  const whole = { open: ignore, close: ignore, text: ignore, ...handler };
  for await (const _ of readXml(openPart(file, part), whole));
}

export interface Relation {
  /** Last word of its type, such as `worksheet`. */
  readonly type: string;
  readonly path: string;
}

/** By id; of the whole archive where `path` is empty. */
export async function readRelations(
  file: WorkbookFile,
  path: string,
): Promise<ReadonlyMap<string, Relation>> {
  const slash = path.lastIndexOf('/');
  const folder = path.slice(0, Math.max(0, slash));
  const part = findPart(file, `${folder}/_rels/${path.slice(slash + 1)}.rels`);
  const relations = new Map<string, Relation>();
  if (part === null) return relations;
  const open = (name: string, { Id: id, Type: type, Target: target, TargetMode: mode }: XmlAttributes) => {
    if (name !== 'Relationship' || mode === 'External' || !id || !type || !target) return;
    if (relations.size === MAX_SHEETS)
      throw new DamagedFile(`a part of it has more than ${MAX_SHEETS} relations`);
    relations.set(id, { type: type.slice(type.lastIndexOf('/') + 1), path: resolve(folder, target) });
  };
  await readPart(file, part, { open });
  return relations;
}

/** Never outside: what would lead there names nothing. */
function resolve(folder: string, target: string): string {
  const steps = target.startsWith('/') ? [] : folder.split('/').filter((step) => step !== '');
  for (const step of target.split('/')) {
    if (step === '..') steps.pop();
    else if (step !== '' && step !== '.') steps.push(step);
  }
  return `/${steps.join('/')}`;
}

/** A sheet as the workbook lists it. */
export interface ListedSheet {
  readonly name: string;
  readonly relation: string;
  readonly isHidden: boolean;
}

export interface WorkbookFacts {
  readonly sheets: readonly ListedSheet[];
  readonly from1904: boolean;
  readonly isUncalculated: boolean;
}

export async function readWorkbookPart(file: WorkbookFile, part: ZipMember): Promise<WorkbookFacts> {
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
      const isHidden = (attributes['state'] ?? 'visible') !== 'visible';
      const { name: title = '' } = attributes;
      if (title.length > MAX_SHEET_NAME_CHARS) throw new DamagedFile(`a sheet has the name ${title}`);
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

/** Returns `r:id`, whatever the prefix is. A strict workbook has another namespace for it, which ends in the same word. */
function relationOf(attributes: XmlAttributes, namespaceOf: NamespaceOf): string {
  const found = Object.entries(attributes).find(
    ([name]) => name.endsWith(':id') && /\/relationships$/.test(namespaceOf(name.slice(0, -':id'.length))),
  );
  return found?.[1] ?? '';
}

/** Reads the meaning of numbers in each style. */
export async function readStyles(file: WorkbookFile, part: ZipMember | null): Promise<readonly NumberKind[]> {
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
  if (part !== null) await readPart(file, part, { open, close });
  return kinds;
}

/** The strings that cells refer to, as cells of CSV. */
export async function readSharedText(file: WorkbookFile, part: ZipMember | null): Promise<SharedText> {
  const shared = new SharedText();
  if (part !== null) await readPart(file, part, new SharedTextReader(shared));
  return shared;
}

class SharedTextReader implements XmlHandler {
  readonly #shared: SharedText;
  #text = '';
  #inText = false;
  #inPhonetic = false;

  constructor(shared: SharedText) {
    this.#shared = shared;
  }

  open = (name: string): void => {
    if (name === 'si') this.#text = '';
    else if (name === 'rPh') this.#inPhonetic = true;
    else if (name === 't') this.#inText = !this.#inPhonetic;
  };

  close = (name: string): void => {
    if (name === 't') this.#inText = false;
    else if (name === 'rPh') this.#inPhonetic = false;
    else if (name === 'si' && !this.#shared.add(csvCell(unescapeText(this.#text)))) {
      throw new DamagedFile('it has more text than is held in memory; save it as CSV and send that');
    }
  };

  text = (text: string): void => {
    if (!this.#inText) return;
    this.#text += text;
    if (this.#text.length > MAX_CELL_CHARS) {
      throw new DamagedFile(`a text that cells share has more than ${MAX_CELL_CHARS} characters`);
    }
  };
}
