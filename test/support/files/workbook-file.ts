import { type ZipContent, zipFile } from './zip-file.ts';

/** Builds minimal Excel workbooks, in which tests control every byte. */

interface SheetOfTest {
  readonly name: string;
  /** Content of `<sheetData>`. */
  readonly rows: string;
  /** XML that follows `<sheetData>`. */
  readonly after?: string;
  readonly state?: 'hidden' | 'veryHidden';
}

export interface WorkbookOfTest {
  readonly sheets: readonly SheetOfTest[];
  /** Contents of the `<si>` elements (shared strings). */
  readonly shared?: readonly string[];
  /** Number format of each style, starting with style 1. A number selects a built-in format. */
  readonly formats?: readonly (string | number)[];
  readonly from1904?: boolean;
  /** XML that follows the list of sheets in the workbook part. */
  readonly calculation?: string;
  /** Additional parts, by name. A part with the name of a standard part replaces that part. */
  readonly parts?: Readonly<Record<string, string | Buffer>>;
}

export function textRow(row: number, ...cells: readonly string[]): string {
  const text = cells.map(
    (cell) => `<c t="inlineStr"><is><t xml:space="preserve">${escapeXml(cell)}</t></is></c>`,
  );
  return `<row r="${row}">${text.join('')}</row>`;
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('\r', '&#13;');
}

export function workbookFile(workbook: WorkbookOfTest): Buffer<ArrayBuffer> {
  return zipFile(workbookParts(workbook));
}

const declaration = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';

function workbookParts(workbook: WorkbookOfTest): ZipContent[] {
  const { sheets, shared = [], formats = [] } = workbook;
  const parts: Record<string, string | Buffer> = {
    '[Content_Types].xml': '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    '_rels/.rels': relations([['rId1', 'officeDocument', 'xl/workbook.xml']]),
    'xl/workbook.xml': workbookPart(workbook),
    'xl/_rels/workbook.xml.rels': relations([
      ...sheets.map(
        (_, index) => [`rId${index + 1}`, 'worksheet', `worksheets/sheet${index + 1}.xml`] as const,
      ),
      ['rId1001', 'styles', 'styles.xml'],
      ['rId1002', 'sharedStrings', '/xl/sharedStrings.xml'],
    ]),
    'xl/styles.xml': stylesPart(formats),
    'xl/sharedStrings.xml': `<sst xmlns="${main}">${shared.map((each) => `<si>${each}</si>`).join('')}</sst>`,
  };
  for (const [index, { rows, after = '' }] of sheets.entries()) {
    const sheet = `<worksheet xmlns="${main}"><sheetData>${rows}</sheetData>${after}</worksheet>`;
    parts[`xl/worksheets/sheet${index + 1}.xml`] = sheet;
  }
  const all = { ...parts, ...workbook.parts };
  return Object.entries(all).map(([name, data]) => ({
    name,
    data: typeof data === 'string' && !data.startsWith('<?xml') ? declaration + data : data,
  }));
}

function workbookPart({ sheets, from1904 = false, calculation = '' }: WorkbookOfTest): string {
  const listed = sheets.map(
    ({ name, state }, index) =>
      `<sheet name="${escapeXml(name)}" sheetId="${index + 1}"${state === undefined ? '' : ` state="${state}"`} r:id="rId${index + 1}"/>`,
  );
  const dates = from1904 ? '<workbookPr date1904="1"/>' : '<workbookPr/>';
  return `<workbook xmlns="${main}" xmlns:r="${office}">${dates}<sheets>${listed.join('')}</sheets>${calculation}</workbook>`;
}

function relations(all: readonly (readonly [id: string, type: string, target: string])[]): string {
  const each = all.map(
    ([id, type, target]) => `<Relationship Id="${id}" Type="${office}/${type}" Target="${target}"/>`,
  );
  return `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${each.join('')}</Relationships>`;
}

function stylesPart(formats: readonly (string | number)[]): string {
  const codes = formats.map((format, index) =>
    typeof format === 'string'
      ? `<numFmt numFmtId="${200 + index}" formatCode="${escapeXml(format).replaceAll('"', '&quot;')}"/>`
      : '',
  );
  const styles = formats.map(
    (format, index) => `<xf numFmtId="${typeof format === 'string' ? 200 + index : format}"/>`,
  );
  return `<styleSheet xmlns="${main}"><numFmts>${codes.join('')}</numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/>${styles.join('')}</cellXfs><dxfs><dxf><numFmt numFmtId="200" formatCode="yyyy"/></dxf></dxfs></styleSheet>`;
}
