import { gzipSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { textRow, workbookFile } from './workbook-file.ts';
import { zipFile } from './zip-file.ts';

/**
 * A small file crafted to cost a reader much time or memory. Each of these files once slowed down,
 * bloated or crashed a server.
 */

interface HostileFile {
  readonly name: string;
  readonly contentType: string;
  readonly make: () => Buffer;
}

const MiB = 1024 * 1024;
const csv = 'text/csv';
const json = 'application/json';
const xlsx = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';

export const hostileFiles: readonly HostileFile[] = [
  { name: 'Parquet: 3 000 columns', contentType: 'application/vnd.apache.parquet', make: wideParquet },
  { name: 'CSV: 10 000 columns', contentType: csv, make: () => wideCsv(10_000, 500) },
  {
    name: 'CSV: a million bad lines',
    contentType: csv,
    make: () => Buffer.from(`user_id,a\n${'x\n'.repeat(1e6)}`),
  },
  {
    name: 'CSV: a closed cell of 80 MB',
    contentType: csv,
    make: () =>
      Buffer.concat([Buffer.from('user_id,a\nu1,"'), Buffer.alloc(80e6, 'a\n'), Buffer.from('"\n')]),
  },
  {
    name: 'CSV: a header of 8 MiB',
    contentType: csv,
    make: () => Buffer.from(`user_id,${'column,'.repeat((8 * MiB) / 7)}\nu1\n`),
  },
  {
    name: 'CSV in UTF-16',
    contentType: csv,
    make: () => Buffer.from(`\ufeffuser_id,a\n${'u,\u00e9\n'.repeat(5e6)}`, 'utf16le'),
  },
  { name: 'gzip bomb', contentType: csv, make: () => gzipSync(Buffer.alloc(256 * MiB, 'u1,x\n')) },
  {
    name: 'ZIP bomb',
    contentType: 'application/zip',
    make: () => zipFile([{ name: 'a.csv', data: Buffer.alloc(256 * MiB, 'u,x\n') }]),
  },
  { name: 'Excel: shared text', contentType: xlsx, make: () => workbook(1, 1_000_000) },
  { name: 'Excel: 1 000 sheets', contentType: xlsx, make: () => workbook(1_000, 1) },
  { name: 'JSON: nesting', contentType: json, make: () => Buffer.alloc(8 * MiB, '[') },
  { name: 'JSON: a path', contentType: json, make: () => deepDocument() },
  { name: 'JSON: one object of many keys', contentType: json, make: () => manyKeys() },
];

function wideParquet(): Buffer {
  const data = Array.from({ length: 1_000 }, () => 'x');
  const columnData = Array.from({ length: 3_000 }, (_, column) => ({
    name: column === 0 ? 'user_id' : `c${column}`,
    data,
  }));
  return Buffer.from(parquetWriteBuffer({ columnData }));
}

function wideCsv(columns: number, records: number): Buffer {
  const names = Array.from({ length: columns - 1 }, (_, column) => `c${column}`);
  const cells = ',x'.repeat(columns - 1);
  const lines = Array.from({ length: records }, (_, record) => `u${record}${cells}\n`);
  return Buffer.from(`user_id,${names.join(',')}\n${lines.join('')}`);
}

function workbook(sheets: number, shared: number): Buffer {
  const rows = textRow(1, 'user_id', 'a') + textRow(2, 'u1', 'x');
  return workbookFile({
    sheets: Array.from({ length: sheets }, (_, number) => ({ name: `s${number}`, rows })),
    shared: Array.from(
      { length: shared },
      () => '<t>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa</t>',
    ),
  });
}

function deepDocument(): Buffer {
  const open = `{"${'k'.repeat(MiB / 16)}":`;
  const close = '}';
  const records = '{"user_id":"u","a":{"b":[1,2,3]}},'.repeat(200_000);
  return Buffer.from(`${open.repeat(15)}[${records}{}]${close.repeat(15)}`);
}

function manyKeys(): Buffer {
  return Buffer.from(`{${Array.from({ length: 1_000_000 }, (_, key) => `"k${key}":[{}],`).join('')}"a":1}`);
}

/**
 * Returns four compressed events. The time field of each event contains two letters with very many
 * spaces between them.
 */
export function blankRecords(): Buffer {
  const record = `{"event_type":"track","user_id":"u","event_name":"e","inserted_at":"x${' '.repeat(65_000)}x"}\n`;
  return gzipSync(record.repeat(4));
}
