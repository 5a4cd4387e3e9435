import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { crc32, createDeflateRaw } from 'node:zlib';
import { columns, userCells } from './users-file.ts';

const head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const relations = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const packageRelations = 'http://schemas.openxmlformats.org/package/2006/relationships';
const contentTypes = 'http://schemas.openxmlformats.org/package/2006/content-types';
const partType = 'application/vnd.openxmlformats-officedocument.spreadsheetml';

const parts: Readonly<Record<string, string>> = {
  '[Content_Types].xml': `<Types xmlns="${contentTypes}"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="${partType}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="${partType}.worksheet+xml"/><Override PartName="/xl/sharedStrings.xml" ContentType="${partType}.sharedStrings+xml"/></Types>`,
  '_rels/.rels': `<Relationships xmlns="${packageRelations}"><Relationship Id="rId1" Type="${relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
  'xl/workbook.xml': `<workbook xmlns="${main}" xmlns:r="${relations}"><sheets><sheet name="Users" sheetId="1" r:id="rId1"/></sheets></workbook>`,
  'xl/_rels/workbook.xml.rels': `<Relationships xmlns="${packageRelations}"><Relationship Id="rId1" Type="${relations}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="${relations}/sharedStrings" Target="sharedStrings.xml"/></Relationships>`,
};

/**
 * Writes the users of `writeUsersFile` to one sheet, with all cells as strings. `inline` writes the
 * strings in the cells, as streaming programs do. `shared` writes them in a table, as Excel does.
 */
export async function writeWorkbook(path: string, rows: number, strings: 'inline' | 'shared'): Promise<void> {
  const table = strings === 'shared' ? new Map<string, number>() : null;
  const zip = new ZipWriter(createWriteStream(path));
  for (const [name, text] of Object.entries(parts)) await zip.add(name, [head + text]);
  await zip.add('xl/worksheets/sheet1.xml', sheet(rows, table));
  await zip.add('xl/sharedStrings.xml', sharedStrings(table ?? new Map<string, number>()));
  await zip.close();
}

function* sheet(rows: number, table: Map<string, number> | null): Generator<string> {
  let block = `${head}<worksheet xmlns="${main}"><sheetData>`;
  for (let n = -1; n < rows; n++) {
    const cells = n === -1 ? columns : userCells(n, 0);
    block += `<row r="${n + 2}">`;
    for (const [column, text] of cells.entries()) {
      const place = `r="${String.fromCharCode(65 + column)}${n + 2}"`;
      block +=
        table === null
          ? `<c ${place} t="inlineStr"><is><t>${escapeXml(text)}</t></is></c>`
          : `<c ${place} t="s"><v>${indexIn(table, text)}</v></c>`;
    }
    block += '</row>';
    if (block.length > 1 << 20) {
      yield block;
      block = '';
    }
  }
  yield `${block}</sheetData></worksheet>`;
}

function indexIn(table: Map<string, number>, text: string): number {
  const index = table.get(text);
  if (index !== undefined) return index;
  table.set(text, table.size);
  return table.size - 1;
}

function* sharedStrings(table: ReadonlyMap<string, number>): Generator<string> {
  let block = `${head}<sst xmlns="${main}" uniqueCount="${table.size}">`;
  for (const text of table.keys()) {
    block += `<si><t>${escapeXml(text)}</t></si>`;
    if (block.length > 1 << 20) {
      yield block;
      block = '';
    }
  }
  yield `${block}</sst>`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

/** Zip flag: the sizes follow the data, because they are unknown before the data is written. */
const SIZES_FOLLOW = 8;
const DEFLATED = 8;
const VERSION = 20;

/** Each member must be smaller than 4 GiB. */
class ZipWriter {
  readonly #out: WriteStream;
  readonly #entries: Buffer[] = [];
  #at = 0;

  constructor(out: WriteStream) {
    this.#out = out;
  }

  async add(name: string, text: Iterable<string>): Promise<void> {
    const start = this.#at;
    await this.#write(Buffer.concat([fields('PK\x03\x04', ...describe(0, 0, 0, name)), Buffer.from(name)]));
    let crc = 0;
    let size = 0;
    const packedFrom = this.#at;
    const count = function* (): Generator<Buffer> {
      for (const piece of text) {
        const bytes = Buffer.from(piece);
        crc = crc32(bytes, crc);
        size += bytes.length;
        yield bytes;
      }
    };
    await pipeline(
      Readable.from(count()),
      createDeflateRaw({ level: 1 }),
      async (packed: AsyncIterable<Buffer>) => {
        for await (const bytes of packed) await this.#write(bytes);
      },
    );
    const packedSize = this.#at - packedFrom;
    await this.#write(fields('PK\x07\x08', [4, crc], [4, packedSize], [4, size]));
    const about = describe(crc, packedSize, size, name);
    const entry = fields('PK\x01\x02', [2, VERSION], ...about, [2, 0], [2, 0], [2, 0], [4, 0], [4, start]);
    this.#entries.push(entry, Buffer.from(name));
  }

  async close(): Promise<void> {
    const directory = Buffer.concat(this.#entries);
    const start = this.#at;
    const count = this.#entries.length / 2;
    await this.#write(directory);
    await this.#write(
      fields('PK\x05\x06', [2, 0], [2, 0], [2, count], [2, count], [4, directory.length], [4, start], [2, 0]),
    );
    this.#out.end();
    await finished(this.#out);
  }

  async #write(bytes: Buffer): Promise<void> {
    this.#at += bytes.length;
    if (!this.#out.write(bytes)) await once(this.#out, 'drain');
  }
}

type Field = readonly [bytes: 2 | 4, value: number];

/** Fields that a member's header and its directory entry share. */
function describe(crc: number, packedSize: number, size: number, name: string): Field[] {
  return [
    [2, VERSION],
    [2, SIZES_FOLLOW],
    [2, DEFLATED],
    [4, 0],
    [4, crc],
    [4, packedSize],
    [4, size],
    [2, Buffer.byteLength(name)],
    [2, 0],
  ];
}

function fields(signature: string, ...values: readonly Field[]): Buffer {
  const buffers = values.map(([bytes, value]) => {
    const part = Buffer.alloc(bytes);
    part.writeUIntLE(value, 0, bytes);
    return part;
  });
  return Buffer.concat([Buffer.from(signature, 'latin1'), ...buffers]);
}
