import { crc32, deflateRawSync } from 'node:zlib';

/** Builds ZIP archives, including invalid ones. */

export interface ZipContent {
  readonly name: string;
  readonly data: string | Buffer;
  /** Compression method: 0 (none) or 8 (deflate). Default: 8. */
  readonly method?: number;
  /** Whether the sizes and the CRC-32 follow the data, as they do in a streamed archive. */
  readonly hasDescriptor?: boolean;
  readonly isEncrypted?: boolean;
  /** Wrong values to write into the central directory. */
  readonly claims?: { readonly size?: number; readonly crc?: number };
}

interface ZipShape {
  /** Whether sizes and offsets have 64 bits, as in archives of more than 4 GiB. */
  readonly zip64?: boolean;
}

export function zipFile(
  contents: readonly ZipContent[],
  { zip64 = false }: ZipShape = {},
): Buffer<ArrayBuffer> {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const content of contents) {
    const { local, central } = member(content, at, zip64);
    parts.push(local);
    directory.push(central);
    at += local.length;
  }
  const bytes = directory.reduce((sum, each) => sum + each.length, 0);
  return Buffer.concat([...parts, ...directory, ...end({ count: contents.length, bytes, at, zip64 })]);
}

const MAX_32 = 0xffffffff;

function member(content: ZipContent, at: number, zip64: boolean): { local: Buffer; central: Buffer } {
  const data = Buffer.from(content.data);
  const method = content.method ?? 8;
  const packed = method === 8 ? deflateRawSync(data) : data;
  const name = Buffer.from(content.name);
  const flags = 0x800 | (content.hasDescriptor === true ? 8 : 0) | (content.isEncrypted === true ? 1 : 0);
  const facts = {
    crc: content.claims?.crc ?? crc32(data),
    packed: packed.length,
    size: content.claims?.size ?? data.length,
  };
  const before = Buffer.alloc(30);
  before.write('PK\x03\x04', 'latin1');
  before.writeUInt16LE(20, 4);
  before.writeUInt16LE(flags, 6);
  before.writeUInt16LE(method, 8);
  if (content.hasDescriptor !== true) writeFacts(before, 14, facts);
  before.writeUInt16LE(name.length, 26);
  const behind = Buffer.alloc(content.hasDescriptor === true ? 16 : 0);
  if (behind.length > 0) {
    behind.write('PK\x07\x08', 'latin1');
    writeFacts(behind, 4, facts);
  }
  const extra = zip64 ? zip64Extra(facts, at) : Buffer.alloc(0);
  const central = Buffer.alloc(46);
  central.write('PK\x01\x02', 'latin1');
  central.writeUInt16LE(20, 4);
  central.writeUInt16LE(20, 6);
  central.writeUInt16LE(flags, 8);
  central.writeUInt16LE(method, 10);
  writeFacts(central, 16, zip64 ? { ...facts, packed: MAX_32, size: MAX_32 } : facts);
  central.writeUInt16LE(name.length, 28);
  central.writeUInt16LE(extra.length, 30);
  central.writeUInt32LE(zip64 ? MAX_32 : at, 42);
  return {
    local: Buffer.concat([before, name, packed, behind]),
    central: Buffer.concat([central, name, extra]),
  };
}

function writeFacts(to: Buffer, at: number, facts: { crc: number; packed: number; size: number }): void {
  to.writeUInt32LE(facts.crc, at);
  to.writeUInt32LE(facts.packed, at + 4);
  to.writeUInt32LE(facts.size, at + 8);
}

function zip64Extra({ packed, size }: { packed: number; size: number }, at: number): Buffer {
  const extra = Buffer.alloc(28);
  extra.writeUInt16LE(1, 0);
  extra.writeUInt16LE(24, 2);
  for (const [index, value] of [size, packed, at].entries())
    extra.writeBigUInt64LE(BigInt(value), 4 + 8 * index);
  return extra;
}

interface End {
  readonly count: number;
  readonly bytes: number;
  readonly at: number;
  readonly zip64: boolean;
}

function end({ count, bytes, at, zip64 }: End): Buffer[] {
  const last = Buffer.alloc(22);
  last.write('PK\x05\x06', 'latin1');
  last.writeUInt16LE(zip64 ? 0xffff : count, 8);
  last.writeUInt16LE(zip64 ? 0xffff : count, 10);
  last.writeUInt32LE(bytes, 12);
  last.writeUInt32LE(zip64 ? MAX_32 : at, 16);
  if (!zip64) return [last];
  const record = Buffer.alloc(56);
  record.write('PK\x06\x06', 'latin1');
  record.writeBigUInt64LE(44n, 4);
  record.writeBigUInt64LE(BigInt(count), 24);
  record.writeBigUInt64LE(BigInt(count), 32);
  record.writeBigUInt64LE(BigInt(bytes), 40);
  record.writeBigUInt64LE(BigInt(at), 48);
  const locator = Buffer.alloc(20);
  locator.write('PK\x06\x07', 'latin1');
  locator.writeBigUInt64LE(BigInt(at + bytes), 8);
  locator.writeUInt32LE(1, 16);
  return [record, locator, last];
}
