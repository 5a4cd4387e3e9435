import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { InputError, TransientError } from '../../../../src/base/errors.ts';
import type { FileRef, FileStore } from '../../../../src/files/file-store.ts';
import { createFileSystemStore } from '../../../../src/files/file-system.ts';
import type { ReceiveLimits } from '../../../../src/load/receive/intake.ts';
import { type ReceiveHints, receive } from '../../../../src/load/receive/receive.ts';
import type { ReceivedFile } from '../../../../src/load/receive/received-file.ts';
import { parquetOf } from '../../../support/files/columnar-file.ts';
import { textRow, workbookFile } from '../../../support/files/workbook-file.ts';
import { zipFile } from '../../../support/files/zip-file.ts';
import { collect, inPieces } from '../../formats/in-pieces.ts';

const MiB = 1 << 20;
const noLimits: ReceiveLimits = {
  maxUploadBytes: 1e12,
  maxInflatedBytes: 1e12,
  minBytesPerSecond: 0,
  stallMs: 20_000,
};
const csv = 'user_id,name\nu1,Ann\nu2,"B\nob"\nu3,Cy\n';

let directory: string;
let store: FileStore;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'sluice-receive-'));
  store = createFileSystemStore(directory);
});

afterEach(() => rm(directory, { recursive: true }));

interface Options {
  readonly hints?: ReceiveHints;
  readonly limits?: Partial<ReceiveLimits>;
  readonly store?: FileStore;
  readonly signal?: AbortSignal;
  readonly clock?: { now(): number };
}

type Source = string | Buffer | AsyncIterable<Uint8Array>;

function take(source: Source, options: Options = {}): Promise<ReceivedFile> {
  const stream =
    typeof source === 'string' || Buffer.isBuffer(source) ? inPieces(Buffer.from(source), []) : source;
  const { hints = {}, limits = {}, signal = new AbortController().signal } = options;
  return receive(stream, options.store ?? store, hints, { ...noLimits, ...limits }, signal, options.clock);
}

async function stored(received: ReceivedFile): Promise<string> {
  return (await collect(store.open(received.ref))).toString();
}

async function leftBehind(): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

/**
 * Returns the status, the code and the message with which a file is refused. Expects that no part
 * of the file remains stored.
 */
async function refusal(source: Source, options: Options = {}): Promise<string> {
  const filesBefore = await leftBehind();
  const error = await take(source, options).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(InputError);
  expect(await leftBehind(), 'files left behind').toEqual(filesBefore);
  const { status, problems, message } = error as InputError;
  return `${status} ${problems[0].code}: ${message}`;
}

describe('the files that are received', () => {
  it('a CSV is stored unchanged and described', async () => {
    const received = await take(csv, { hints: { chunkBytes: 8 } });
    expect(received).toEqual({
      ref: received.ref,
      head: null,
      chunkBytes: 8,
      format: 'csv',
      header: { delimiter: ',', columns: ['user_id', 'name'] },
      object: null,
      readAs: {
        format: 'csv',
        encoding: 'utf-8',
        csv: {
          delimiter: ',',
          quote: '"',
          escape: '"',
          comment: '',
          nulls: [],
          ragged: 'refuse',
          headerLine: 1,
          columns: ['user_id', 'name'],
          columnCount: 2,
        },
        sheet: null,
        sheets: null,
        member: null,
        notes: [],
      },
      receivedBytes: csv.length,
      storedBytes: csv.length,
      sha256: createHash('sha256').update(csv).digest('hex'),
      totalRows: 3,
      isWhole: true,
      chunks: [
        { byteStart: 13, byteEnd: 30, firstRow: 1, firstLine: 2, rowCount: 2, oversized: false },
        { byteStart: 30, byteEnd: 36, firstRow: 3, firstLine: 5, rowCount: 1, oversized: false },
      ],
    });
    expect(await stored(received)).toBe(csv);
  });

  // proves: hostile-files
  it('Parquet is rewritten as NDJSON, even if packed, without leftover files', async () => {
    const rows = '{"user_id":"u1","n":1}\n{"user_id":"u2"}\n';
    const users = [
      { user_id: 'u1', n: 1 },
      { user_id: 'u2', n: null },
    ];
    const parquet = parquetOf(users);
    for (const file of [parquet, gzipSync(parquet)]) {
      const received = await take(file);
      expect(await stored(received)).toBe(rows);
      expect(received).toMatchObject({ format: 'ndjson', totalRows: 2, receivedBytes: file.length });
      expect(received.sha256).toBe(createHash('sha256').update(file).digest('hex'));
      await store.remove(received.ref);
      expect(await leftBehind()).toEqual([]);
      expect(await refusal(Buffer.concat([file.subarray(0, file.length - 30)]))).toMatch(
        /^400 unsupported_format/,
      );
    }
    expect(await refusal('user_id\nu1\n', { hints: { format: 'parquet' } })).toMatch(
      /^400 unsupported_format/,
    );
  });

  // proves: hostile-files
  it('a workbook is read as CSV under any name or packing, without leftover files', async () => {
    const rows = textRow(1, 'user_id', 'name') + textRow(2, 'u1', 'a,b') + textRow(4, 'u2', 'c');
    const file = workbookFile({
      sheets: [
        { name: 'Users', rows },
        { name: 'Costs', rows },
      ],
    });
    const inZip = zipFile([{ name: 'a/users.xlsx', data: file }]);
    for (const upload of [
      file,
      gzipSync(file),
      inZip,
      zipFile([{ name: 'users.xlsx.gz', data: gzipSync(file) }]),
    ]) {
      const received = await take(upload, { hints: { format: 'csv', filename: 'users.csv' } });
      expect(await stored(received)).toBe('user_id,name\nu1,"a,b"\n\nu2,c\n');
      expect(received).toMatchObject({
        format: 'csv',
        totalRows: 2,
        receivedBytes: upload.length,
        sha256: createHash('sha256').update(upload).digest('hex'),
        readAs: {
          format: 'xlsx',
          encoding: null,
          sheet: 'Users',
          sheets: ['Users', 'Costs'],
          csv: { headerLine: 1, columns: ['user_id', 'name'] },
        },
      });
      await store.remove(received.ref);
      expect(await leftBehind()).toEqual([]);
      expect(await refusal(upload.subarray(0, upload.length - 30))).toMatch(/^400 unsupported_format/);
    }
    expect((await take(file, { hints: { source: { sheet: 'costs' } } })).readAs.sheet).toBe('Costs');
    // Delimiters, quotes and comments have no meaning in cells of a sheet.
    const texts = [
      textRow(1, 'Report; of; May'),
      textRow(3, 'user_id', 'a;b;c;d', "'x'"),
      textRow(4, '#1', "'", ' #'),
    ];
    const title = await take(workbookFile({ sheets: [{ name: 'S', rows: texts.join('') }] }));
    expect(title).toMatchObject({
      header: { delimiter: ',', columns: ['user_id', 'a;b;c;d', "'x'"] },
      totalRows: 1,
      readAs: { csv: { headerLine: 3, comment: '', quote: '"' } },
    });
    expect(title.readAs.notes[0]).toMatch(/before the header/);
    expect(await refusal(file, { hints: { source: { sheet: '3' } } })).toContain('400 invalid_field');
    expect(await refusal(csv, { hints: { format: 'xlsx' } })).toContain('This is no file of xlsx');
    expect(await refusal(file, { hints: { envelope: 'users' } })).toContain('This is a ZIP archive');
  });

  it('the JSON lines files of a ZIP archive are read in the order of their numbers', async () => {
    const hour = (n: number) => ({ name: `7/7_${n}#0.json.gz`, data: gzipSync(`{"user_id":"u${n}"}\n`) });
    const lastHour = { name: '7/7_11#0.json.gz', data: gzipSync('{"user_id":"u11"}') };
    const received = await take(
      zipFile([
        lastHour,
        hour(10),
        { name: 'README', data: 'x' },
        hour(9),
        { ...lastHour, name: '7/7_12#0.json.gz' },
      ]),
    );
    expect(received.totalRows).toBe(4);
    expect((await stored(received)).match(/u\d+/g)).toEqual(['u9', 'u10', 'u11', 'u11']);
    expect(received.readAs).toMatchObject({
      format: 'ndjson',
      member: null,
      notes: [
        'Other files of the ZIP archive were passed over: README.',
        'The ZIP archive has 4 files, read in the order of their names.',
      ],
    });
    const damaged = { ...hour(12), data: hour(12).data.subarray(0, 20) };
    expect(await refusal(zipFile([hour(9), damaged]))).toContain(
      'unsupported_format: The gzip data ends early',
    );
  });

  it('the only data file of a ZIP archive is read, beside files of other kinds', async () => {
    const otherFiles = ['__MACOSX/._users.csv', '.DS_Store', 'a/Thumbs.db'].map((name) => ({
      name,
      data: 'x',
    }));
    const parquet = Buffer.from(
      parquetWriteBuffer({ columnData: [{ name: 'user_id', data: ['u1'], type: 'STRING' }] }),
    );
    for (const [name, data, text] of [
      ['a/users.csv', csv, csv],
      ['users', csv, csv],
      ['users.csv.gz', gzipSync(csv), csv],
      ['users.json', '[{"user_id":"u1"}]', '{"user_id":"u1"}\n'],
      ['users.parquet', parquet, '{"user_id":"u1"}\n'],
    ] as const) {
      const received = await take(
        zipFile([{ name: 'a/', data: '', method: 0 }, { name, data }, ...otherFiles]),
      );
      expect(await stored(received), name).toBe(text);
      expect(received.readAs, name).toMatchObject({ member: name, sheet: null, notes: [] });
      await store.remove(received.ref);
      expect(await leftBehind()).toEqual([]);
    }
    const documented = await take(
      zipFile([
        { name: 'README.md', data: 'x' },
        { name: 'users.csv', data: csv },
      ]),
    );
    expect(documented.readAs.notes).toEqual(['Other files of the ZIP archive were passed over: README.md.']);
  });

  it('gzip is unpacked up to twice, with or without a content encoding', async () => {
    for (const bytes of [
      gzipSync(csv),
      gzipSync(gzipSync(csv)),
      Buffer.concat([gzipSync(csv.slice(0, 20)), gzipSync(csv.slice(20))]),
    ]) {
      const received = await take(bytes, { hints: { contentEncodingGzip: true } });
      expect(received.totalRows).toBe(3);
      expect(received.sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
      expect(await stored(received)).toBe(csv);
    }
  });
});

test('a file in a specified encoding is stored in UTF-8, including its header', async () => {
  const bytes = Buffer.from('user_id,\x96\xbc\x91\x4f\nu1,\x93\x63\x92\x86\x95\x5c\n', 'latin1');
  const received = await take(bytes, { hints: { source: { encoding: 'shift_jis' } } });
  expect(await stored(received)).toBe('user_id,名前\nu1,田中表\n');
  expect([received.header?.columns, received.readAs.encoding]).toEqual([['user_id', '名前'], 'shift_jis']);
});

describe('a CSV in another dialect', () => {
  const source = { delimiter: '|~', quote: "'", comment: '#', nulls: ['N/A'], skipRows: 1, skipFooter: 1 };
  const text = (name: string) =>
    `Export\nuser_id|~name\n# a\n'u1'|~'a\nb'\n\nu2|~N/A|~\n'u3' x|~c\nu4|~'${name}'\n\nu5|~""\nTotal|~4\n`;

  // proves: csv-dialects
  it('a CSV in a dialect is stored as plain CSV with the same rows and lines', async () => {
    const plain = `user_id,name\nu1,"a\nb"\n\n\nu2,,\n\0invalid_quote`;
    for (const chunkBytes of [1, 30, 10_000]) {
      const received = await take(text("it''s"), { hints: { source, chunkBytes } });
      expect(await leftBehind()).toHaveLength(1);
      expect(await stored(received)).toMatch(plain);
      expect(await stored(received)).toMatch(/\nu4,it's\n\nu5,"{6}\n$/);
      expect(received).toMatchObject({ format: 'csv', totalRows: 5, readAs: { csv: { headerLine: 2 } } });
      expect(received.header).toEqual({ delimiter: ',', columns: ['user_id', 'name'], isRewritten: true });
      expect(received.head?.toString()).toBe(text("it''s").slice(0, -'Total|~4\n'.length));
      const places = received.chunks.map(({ firstRow, firstLine }) => [firstRow, firstLine]);
      const allPlaces = [
        [1, 4],
        [2, 7],
        [3, 8],
        [4, 9],
        [5, 11],
      ];
      if (chunkBytes === 1) expect(places).toEqual(allPlaces);
      else for (const place of places) expect(allPlaces).toContainEqual(place);
      await store.remove(received.ref);
    }
  });

  it('an oversized record of a dialect is refused alone', async () => {
    const received = await take(text('x\n'.repeat(MiB)), { hints: { source } });
    expect(await stored(received)).toMatch(/\n\0record_too_large \S+ \S+\n+u5,/);
    expect(received.chunks.at(-1)).toMatchObject({ firstRow: 1, firstLine: 4, rowCount: 5 });
  });

  it('a dialect with only nulls in its records is refused as empty', async () => {
    const nulls = 'Export\nuser_id|~name\nN/A|~N/A\nTotal|~1\n';
    expect(await refusal(nulls, { hints: { source } })).toContain('400 empty_file');
  });
});

describe('the files that are refused without a leftover', () => {
  it('a file without a record is refused as empty', async () => {
    for (const empty of ['', '\ufeff', ' \n\r\n\t\n', gzipSync('')]) {
      expect(await refusal(empty)).toBe('400 empty_file: The file is empty');
    }
    expect(await refusal('user_id,name\n\n\r\n')).toBe(
      '400 empty_file: The file has a header but no record (columns: user_id, name)',
    );
    expect(await refusal('\n\n', { hints: { format: 'ndjson' } })).toContain('400 empty_file');
    expect(await refusal('{"users":[]}', { hints: { envelope: 'users' } })).toBe(
      '400 empty_file: The array has no element (users)',
    );
    expect(await refusal('[ ]')).toContain('400 empty_file: The array has no element');
    expect(await refusal('', { hints: { format: 'json' } })).toContain('400 empty_file');
  });

  it('lines skipped at the start and the end are in no chunk', async () => {
    const text = 'x,"\n\nuser_id,a\nu1,1\n\nu2,2\n\nTotal,2\nEnd,\n';
    const { chunks, totalRows, readAs } = await take(text, {
      hints: { source: { skipRows: 1, skipFooter: 2 } },
    });
    expect(totalRows).toBe(2);
    expect(chunks.map(({ byteStart, byteEnd }) => text.slice(byteStart, byteEnd))).toEqual([
      'u1,1\n\nu2,2\n\n',
    ]);
    expect(chunks[0]).toMatchObject({ firstLine: 4, firstRow: 1, rowCount: 2 });
    expect(readAs.csv?.headerLine).toBe(3);
    expect(await refusal('user_id,a\nu1,1\n', { hints: { source: { skipFooter: 2 } } })).toContain(
      'empty_file',
    );
  });

  // proves: upload-cut-off
  it('an upload one byte over the limit is refused', async () => {
    expect((await take(csv, { limits: { maxUploadBytes: csv.length } })).totalRows).toBe(3);
    expect(await refusal(csv, { limits: { maxUploadBytes: csv.length - 1 } })).toContain(
      '413 payload_too_large',
    );
  });

  it('gzip that is cut, packed three times or not gzip at all is refused', async () => {
    const packedOnce = gzipSync(csv);
    expect(await refusal(packedOnce.subarray(0, 30))).toBe(
      '400 unsupported_format: The gzip data ends early',
    );
    expect(await refusal(gzipSync(gzipSync(packedOnce)))).toContain('packed more than 2 times');
    expect(await refusal(csv, { hints: { contentEncodingGzip: true } })).toContain(
      'says that its body is gzip',
    );
  });

  /** A line of 1 kB. The same number of bytes in more lines would only take longer. */
  const longLine = `${'a'.repeat(1_023)}\n`;

  // proves: inflate-bound
  it('a decompression bomb is refused by its size and by its growth', async () => {
    const bomb = gzipSync(Buffer.alloc(20 * MiB, longLine));
    expect(await refusal(bomb)).toContain('413 payload_too_large: The upload unpacks to more than 200 times');
    expect(await refusal(gzipSync(bomb))).toContain('413 payload_too_large');
    expect(await refusal(bomb, { limits: { maxInflatedBytes: MiB } })).toContain('413 payload_too_large');
  });

  it('binary files are refused by their kind', async () => {
    expect(await refusal('%PDF-1.7')).toContain('400 unsupported_format: This is a PDF');
    expect(await refusal('PK\x03\x04\x14\0\x06')).toContain(
      '400 unsupported_format: The ZIP archive is damaged',
    );
    const locked = `\xd0\xcf\x11\xe0${'\0'.repeat(1000)}${Buffer.from('EncryptedPackage', 'utf16le').toString('latin1')}`;
    expect(await refusal(Buffer.from(locked, 'latin1'))).toContain(
      'This is an Office document with a password',
    );
    expect(await refusal(Buffer.from(locked.slice(0, 900), 'latin1'))).toContain(
      'an old Excel workbook (.xls)',
    );
  });

  it('a ZIP archive without exactly one data file is refused', async () => {
    const entry = (name: string, data: string | Buffer = csv) => ({ name, data });
    for (const [contents, words] of [
      [[entry('.DS_Store')], 'The ZIP archive has no file in it'],
      [
        [entry('a.csv'), entry('b.csv'), entry('c.md')],
        '2 files that may be the data; send each by itself, or in an archive of its own (a.csv, b.csv)',
      ],
      [[entry('a.md'), entry('b.md')], '2 files that may be the data'],
      [[entry('a.zip', zipFile([entry('a.csv')]))], 'This is a ZIP archive (a.zip) in a ZIP archive;'],
      [
        [entry('[Content_Types].xml'), entry('xl/workbook.bin')],
        'This is a binary Excel workbook (.xlsb); save it as .xlsx',
      ],
      [[entry('[Content_Types].xml'), entry('word/document.xml')], 'This is a document without sheets;'],
      [[entry('mimetype'), entry('content.xml')], 'This is an OpenDocument file, such as .ods;'],
      [[entry('[Content_Types].xml')], 'it does not say where its sheets are'],
      [[entry('a.pdf', '%PDF-1.7')], 'This is a PDF;'],
    ] as const) {
      expect(await refusal(zipFile(contents)), words).toContain(words);
    }
  });

  // proves: hostile-files
  it('a ZIP archive or workbook that unpacks beyond its bounds is refused', async () => {
    const half = { data: gzipSync(Buffer.alloc(3 * MiB, '{"a":1}\n')), method: 0 };
    const halves = zipFile([
      { name: '1.json.gz', ...half },
      { name: '2.json.gz', ...half },
    ]);
    expect(await refusal(halves, { limits: { maxInflatedBytes: 5 * MiB } })).toContain('payload_too_large');
    const bomb = zipFile([{ name: 'a.csv', data: Buffer.alloc(20 * MiB, longLine) }]);
    expect(await refusal(bomb)).toContain('413 payload_too_large: The upload unpacks to more than 200 times');
    expect(await refusal(bomb, { limits: { maxInflatedBytes: MiB } })).toContain('413 payload_too_large');
    const shared = [`<t>${'x'.repeat(60_000)}</t>`];
    const row = `<row>${'<c t="s"><v>0</v></c>'.repeat(500)}</row>`;
    const workbook = workbookFile({ sheets: [{ name: 'S', rows: row.repeat(10) }], shared });
    expect(await refusal(workbook)).toContain(
      '413 payload_too_large: The upload unpacks to more than 2000 times',
    );
  });

  // proves: upload-cut-off
  it('a stalled source is refused', async () => {
    async function* stalling(): AsyncGenerator<Buffer> {
      yield Buffer.from(csv);
      await new Promise(() => undefined);
    }
    expect(await refusal(stalling(), { limits: { stallMs: 5 } })).toContain(
      '408 upload_too_slow: The upload has stalled',
    );
    const stallingPacked = async function* () {
      yield gzipSync(csv).subarray(0, 30);
      await new Promise(() => undefined);
    };
    expect(await refusal(stallingPacked(), { limits: { stallMs: 5 } })).toContain('408 upload_too_slow');
  });

  // proves: upload-cut-off
  it('a source below the least speed is refused after its grace period, and no other', async () => {
    let now = 0;
    const clock = { now: () => now };
    async function* slow(pieces: number, ms: number): AsyncGenerator<Buffer> {
      yield Buffer.from('user_id\n');
      for (let i = 0; i < pieces; i++) {
        now += ms;
        yield Buffer.from(`u${i}\n`.padEnd(100, '\n'));
      }
    }
    const limits = { minBytesPerSecond: 100 };
    expect(await refusal(slow(100, 1100), { clock, limits })).toContain(
      '408 upload_too_slow: The upload is too slow (',
    );
    expect((await take(slow(100, 900), { clock, limits })).totalRows).toBe(100);
    expect((await take(slow(8, 1100), { clock, limits })).totalRows, 'within the grace').toBe(8);
  });

  it('slow storage is not counted against the sender', async () => {
    let now = 0;
    const slowStore: FileStore = {
      ...store,
      create: async () => {
        const writer = await store.create();
        const write = (bytes: Uint8Array) => {
          now += 60_000;
          return writer.write(bytes);
        };
        return { ref: writer.ref, write, commit: () => writer.commit(), discard: () => writer.discard() };
      },
    };
    async function* source(): AsyncGenerator<Buffer> {
      yield Buffer.from('user_id\n');
      for (let i = 0; i < 5; i++) yield Buffer.alloc(300_000, 'abcdefghi\n');
    }
    const options = { store: slowStore, clock: { now: () => now }, limits: { minBytesPerSecond: 1e9 } };
    expect((await take(source(), options)).totalRows).toBe(150_000);
  });

  it('an error of the source is passed on without a leftover', async () => {
    const sourceError = new Error('connection reset');
    for (const head of [csv, gzipSync(csv).subarray(0, 30), '{"users":[1,', csv + 'u'.repeat(2 * MiB)]) {
      const cutOff = async function* () {
        yield Buffer.from(head as string);
        throw sourceError;
      };
      await expect(take(cutOff())).rejects.toBe(sourceError);
      expect(await leftBehind()).toEqual([]);
    }
  });

  it('an aborted reception throws the reason of its signal', async () => {
    const reason = new Error('going down');
    const controller = new AbortController();
    async function* endless(): AsyncGenerator<Buffer> {
      yield Buffer.from(csv);
      setImmediate(() => controller.abort(reason));
      await new Promise(() => undefined);
    }
    await expect(take(endless(), { signal: controller.signal })).rejects.toBe(reason);
    await expect(take(csv, { signal: controller.signal })).rejects.toBe(reason);
    expect(await leftBehind()).toEqual([]);
  });

  it('a full disk at any write is passed on, and the draft is discarded', async () => {
    const diskError = new TransientError('disk full');
    for (const failAt of [1, 2, 3]) {
      let writes = 0;
      let discarded = 0;
      const failingStore: FileStore = {
        ...store,
        create: async () => ({
          ref: 'never' as FileRef,
          write: async () => {
            if (++writes === failAt) throw diskError;
          },
          commit: () => Promise.reject(new Error('must not be called')),
          discard: async () => {
            discarded++;
          },
        }),
      };
      const rows = Buffer.alloc(700_000, 'abcdefghi\n');
      const source = inPieces(Buffer.concat([Buffer.from('user_id\n'), rows]), [260_000, 520_000]);
      await expect(take(source, { store: failingStore })).rejects.toBe(diskError);
      expect(discarded).toBe(1);
    }
  });
});
