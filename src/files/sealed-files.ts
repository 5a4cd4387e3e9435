import { type Cipher, createCipheriv, randomBytes } from 'node:crypto';
import {
  type FileFolder,
  type FileRef,
  type FileStore,
  type FileWriter,
  isSealed,
  MissingFileError,
  streamOf,
} from './file-store.ts';

/*
 * Sealed files: AES-256-CTR, each file with a random key of its own, which lies in the ledger. A byte keeps its place, so that
 * ranges are read as of any other file. A key is used for one file, written once, so the counter begins at 0. It is kept just
 * before the file becomes visible: what a killed process leaves cannot be read by anybody.
 */

/** The keys of sealed files. */
export interface FileKeys {
  keep(ref: FileRef, key: Buffer): Promise<void>;
  /** Returns `null` once the key is destroyed. */
  find(ref: FileRef): Promise<Buffer | null>;
  /** Destroys the key of a file, or those of all files in a folder. */
  destroy(place: FileRef | FileFolder): Promise<void>;
}

/** A store whose files may be sealed. Readers need not know which are; sealed ones are gone once their key is destroyed. */
export interface SealingStore extends FileStore {
  createSealed(folder?: FileFolder): Promise<FileWriter>;
}

/** @throws MissingFileError once the key is destroyed. */
export async function requireKey(keys: FileKeys, ref: FileRef): Promise<Buffer> {
  const key = await keys.find(ref);
  if (key === null) throw new MissingFileError('the key of the file was destroyed; send the file again');
  return key;
}

export function sealingStore(store: FileStore, keys: FileKeys): SealingStore {
  return {
    ...store,
    create: (folder) => store.create(folder),
    createSealed: async (folder) => sealing(await store.create(folder, 'sealed'), keys),
    async readRange(ref, start, end) {
      if (!isSealed(ref)) return store.readRange(ref, start, end);
      const cipher = cipherAt(await requireKey(keys, ref), start);
      return cipher.update(await store.readRange(ref, start, end));
    },
    open(ref, range) {
      if (!isSealed(ref)) return store.open(ref, range);
      async function* read(): AsyncGenerator<Buffer> {
        const cipher = cipherAt(await requireKey(keys, ref), range?.start ?? 0);
        for await (const bytes of store.open(ref, range)) yield cipher.update(bytes as Buffer);
      }
      return streamOf(read());
    },
    async remove(ref) {
      if (isSealed(ref)) await keys.destroy(ref);
      await store.remove(ref);
    },
    async removeFolder(folder) {
      await keys.destroy(folder);
      await store.removeFolder(folder);
    },
  };
}

function sealing(writer: FileWriter, keys: FileKeys): FileWriter {
  const key = randomBytes(32);
  const cipher = cipherAt(key, 0);
  let state: 'open' | 'committing' | 'committed' = 'open';
  return {
    ref: writer.ref,
    write: (bytes) => writer.write(cipher.update(bytes)),
    async commit() {
      state = 'committing';
      await keys.keep(writer.ref, key);
      const ref = await writer.commit();
      state = 'committed';
      return ref;
    },
    async discard() {
      if (state === 'committed') return;
      await writer.discard();
      // Should it fail: whoever sweeps what was never used removes the file once more, and its key.
      if (state === 'committing') await keys.destroy(writer.ref).catch(() => undefined);
    },
  };
}

const algorithm = 'aes-256-ctr';
const blockBytes = 16;
/** The bytes that a sealed part has more than the clear one. */
export const SEAL_BYTES = 12;

/** Encrypts a part of a sealed file that is kept elsewhere. The file's own counters all begin with zeros. */
export function sealPart(key: Buffer, clear: Uint8Array): Buffer {
  const nonce = randomBytes(SEAL_BYTES);
  return Buffer.concat([nonce, partCipher(key, nonce).update(clear)]);
}

/** Decrypts what `sealPart` returned, or the beginning of it. */
export function openPart(key: Buffer, sealed: Buffer): Buffer {
  return partCipher(key, sealed.subarray(0, SEAL_BYTES)).update(sealed.subarray(SEAL_BYTES));
}

function partCipher(key: Buffer, nonce: Buffer): Cipher {
  return createCipheriv(algorithm, key, Buffer.concat([nonce, Buffer.alloc(blockBytes - SEAL_BYTES)]));
}

/** Encrypts and decrypts alike, from the byte at `position` on. */
function cipherAt(key: Buffer, position: number): Cipher {
  const counter = Buffer.alloc(blockBytes);
  counter.writeBigUInt64BE(BigInt(Math.floor(position / blockBytes)), blockBytes / 2);
  const cipher = createCipheriv(algorithm, key, counter);
  cipher.update(Buffer.alloc(position % blockBytes));
  return cipher;
}
