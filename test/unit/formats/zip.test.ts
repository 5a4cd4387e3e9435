import { deflateRawSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { ZipArchive } from '../../../src/formats/zip.ts';
import { type ZipContent, zipFile } from '../../support/files/zip-file.ts';
import { collect, refusalOf, wholeFile } from './in-pieces.ts';

async function unpack(bytes: Buffer, guard = (_: number): void => undefined) {
  const archive = await ZipArchive.open(wholeFile(bytes));
  const texts: Record<string, string> = {};
  for (const member of archive.members)
    texts[member.name] = (await collect(archive.read(member, guard))).toString();
  return texts;
}

const refusal = (contents: readonly ZipContent[] | Buffer) =>
  refusalOf(unpack(Buffer.isBuffer(contents) ? contents : zipFile(contents)));

const long = 'x,1\n'.repeat(300_000);

it('all members are read, packed or stored, streamed or in 64 bits', async () => {
  const contents: ZipContent[] = [
    { name: 'folder/', data: '', method: 0 },
    { name: 'folder/ä.csv', data: 'a\n1\n' },
    { name: 'stored', data: long, method: 0 },
    { name: 'stream', data: long, hasDescriptor: true },
    { name: 'empty', data: '' },
  ];
  const texts = { 'folder/ä.csv': 'a\n1\n', stored: long, stream: long, empty: '' };
  expect(await unpack(zipFile(contents))).toEqual(texts);
  expect(await unpack(zipFile(contents, { zip64: true }))).toEqual(texts);
  expect(await unpack(zipFile([]))).toEqual({});
});

// proves: hostile-files
it('a damaged, locked or unsupported archive is refused with its fault', async () => {
  const data = 'a\n1\n';
  for (const [content, words] of [
    [{ name: '../out', data }, 'invalid relative path: ../out'],
    [{ name: '/etc/x', data }, 'absolute path: /etc/x'],
    [{ name: 'a', data, isEncrypted: true }, 'The member a has a password'],
    [{ name: 'a', data, method: 77 }, 'The member a is packed with method 77'],
    [{ name: 'a', data, claims: { crc: 1 } }, 'the member a has other bytes than it should'],
    [{ name: 'a', data, claims: { size: 3 } }, 'the member a has other bytes than it should'],
    [{ name: 'a', data, claims: { size: 5 } }, 'the member a has other bytes than it should'],
    [{ name: 'a'.repeat(60_000), data, isEncrypted: true }, `The member ${'a'.repeat(200)}… has a password`],
  ] as const) {
    expect(await refusal([content]), words).toContain(words);
  }
  const members = Array.from({ length: 10_001 }, (_, index) => ({ name: `${index}`, data: '' }));
  expect(await refusal(members)).toContain('it has 10001 members, and at most 10000 are read');
});

it('a member that ends early or has trailing bytes is refused', async () => {
  const deflated = deflateRawSync(long);
  const inPlaceOf = (bytes: Buffer) => {
    const archive = zipFile([{ name: 'a', data: bytes, method: 0 }]);
    // Writes method 8 into the local and the central header, and the uncompressed size into the
    // central header.
    archive.writeUInt16LE(8, 8);
    const central = archive.lastIndexOf('PK\x01\x02', undefined, 'latin1');
    archive.writeUInt16LE(8, central + 10);
    archive.writeUInt32LE(long.length, central + 24);
    return archive;
  };
  expect(await refusal(inPlaceOf(deflated.subarray(0, deflated.length - 5)))).toBe(
    'The member a of the ZIP archive ends early',
  );
  expect(await refusal(inPlaceOf(Buffer.concat([deflated, Buffer.from('more')])))).toBe(
    'The member a of the ZIP archive is followed by something else',
  );
  expect(await refusal(inPlaceOf(Buffer.from('no deflate at all')))).toContain(
    'The member a of the ZIP archive is damaged: ',
  );
});

it('errors of the guard and of the source are passed on', async () => {
  const bound = new Error('too much');
  const guard = () => {
    throw bound;
  };
  for (const method of [0, 8]) {
    await expect(unpack(zipFile([{ name: 'a', data: long, method }]), guard)).rejects.toBe(bound);
  }
  const sourceError = new Error('the store is away');
  const bytes = zipFile([{ name: 'a', data: 'x' }]);
  await expect(
    ZipArchive.open({ bytes: bytes.length, read: () => Promise.reject(sourceError) }),
  ).rejects.toBe(sourceError);
  let reads = 0;
  const readOnce = (start: number, end: number) =>
    ++reads === 1 ? Promise.resolve(bytes.subarray(start, end)) : Promise.reject(sourceError);
  const archive = await ZipArchive.open({ bytes: bytes.length, read: readOnce });
  const [member] = archive.members;
  await expect(collect(archive.read(member as never, () => undefined))).rejects.toBe(sourceError);
});
