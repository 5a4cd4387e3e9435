import { deflateRawSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ZipArchive } from '../../../src/formats/zip.ts';
import { type ZipContent, zipFile } from '../../support/zip-file.ts';
import { collect, refusalOf, wholeFile } from './in-pieces.ts';

async function unpack(bytes: Buffer, guard = (_: number): void => undefined) {
  const archive = await ZipArchive.open(wholeFile(bytes));
  const found: Record<string, string> = {};
  for (const member of archive.members)
    found[member.name] = (await collect(archive.read(member, guard))).toString();
  return found;
}

const refusal = (contents: readonly ZipContent[] | Buffer) =>
  refusalOf(unpack(Buffer.isBuffer(contents) ? contents : zipFile(contents)));

const long = 'x,1\n'.repeat(300_000);

describe('a ZIP archive', () => {
  it('gives its members, packed or not, written as a stream or in 64 bits', async () => {
    const contents: ZipContent[] = [
      { name: 'folder/', data: '', method: 0 },
      { name: 'folder/ä.csv', data: 'a\n1\n' },
      { name: 'stored', data: long, method: 0 },
      { name: 'stream', data: long, hasDescriptor: true },
      { name: 'empty', data: '' },
    ];
    const expected = { 'folder/ä.csv': 'a\n1\n', stored: long, stream: long, empty: '' };
    expect(await unpack(zipFile(contents))).toEqual(expected);
    expect(await unpack(zipFile(contents, { zip64: true }))).toEqual(expected);
    expect(await unpack(zipFile([]))).toEqual({});
  });

  // proves: hostile-files
  it('is refused in words where it is damaged, locked or packed in a way that is not read', async () => {
    const data = 'a\n1\n';
    for (const [content, words] of [
      [{ name: '../out', data }, 'invalid relative path: ../out'],
      [{ name: '/etc/x', data }, 'absolute path: /etc/x'],
      [{ name: 'a', data, isEncrypted: true }, 'The member a has a password'],
      [{ name: 'a', data, method: 77 }, 'The member a is packed with method 77'],
      [{ name: 'a', data, claims: { crc: 1 } }, 'the member a has other bytes than it should'],
      [{ name: 'a', data, claims: { size: 3 } }, 'the member a has other bytes than it should'],
      [{ name: 'a', data, claims: { size: 5 } }, 'the member a has other bytes than it should'],
      [
        { name: 'a'.repeat(60_000), data, isEncrypted: true },
        `The member ${'a'.repeat(200)}… has a password`,
      ],
    ] as const) {
      expect(await refusal([content]), words).toContain(words);
    }
    const many = Array.from({ length: 10_001 }, (_, index) => ({ name: `${index}`, data: '' }));
    expect(await refusal(many)).toContain('it has 10001 members, and at most 10000 are read');
  });

  it('whose data ends early, or goes on after its end, is refused', async () => {
    const packed = deflateRawSync(long);
    const inPlaceOf = (bytes: Buffer) => {
      const archive = zipFile([{ name: 'a', data: bytes, method: 0 }]);
      // Method 8 in both headers, and the length of what should come out of it.
      archive.writeUInt16LE(8, 8);
      const central = archive.lastIndexOf('PK\x01\x02', undefined, 'latin1');
      archive.writeUInt16LE(8, central + 10);
      archive.writeUInt32LE(long.length, central + 24);
      return archive;
    };
    expect(await refusal(inPlaceOf(packed.subarray(0, packed.length - 5)))).toBe(
      'The member a of the ZIP archive ends early',
    );
    expect(await refusal(inPlaceOf(Buffer.concat([packed, Buffer.from('more')])))).toBe(
      'The member a of the ZIP archive is followed by something else',
    );
    expect(await refusal(inPlaceOf(Buffer.from('no deflate at all')))).toContain(
      'The member a of the ZIP archive is damaged: ',
    );
  });

  it('stops where its bound says, and passes on what reading throws', async () => {
    const bound = new Error('too much');
    const guard = () => {
      throw bound;
    };
    for (const method of [0, 8]) {
      await expect(unpack(zipFile([{ name: 'a', data: long, method }]), guard)).rejects.toBe(bound);
    }
    const lost = new Error('the store is away');
    const bytes = zipFile([{ name: 'a', data: 'x' }]);
    await expect(ZipArchive.open({ bytes: bytes.length, read: () => Promise.reject(lost) })).rejects.toBe(
      lost,
    );
    let reads = 0;
    const once = (start: number, end: number) =>
      ++reads === 1 ? Promise.resolve(bytes.subarray(start, end)) : Promise.reject(lost);
    const archive = await ZipArchive.open({ bytes: bytes.length, read: once });
    const [member] = archive.members;
    await expect(collect(archive.read(member as never, () => undefined))).rejects.toBe(lost);
  });
});
