import { type FileRef, type FileWriter, MissingFileError } from './file-store.ts';
import type { S3Bucket } from './s3-bucket.ts';

const S3_PARTS_IN_FLIGHT = 2;

interface NewObject {
  readonly ref: FileRef;
  readonly key: string;
  readonly partBytes: number;
}

/**
 * Uploads a file in parts, or in one request if the file is small. At most S3_PARTS_IN_FLIGHT parts
 * are sent at a time, in reused buffers. The file is invisible until `commit`.
 */
export class S3Writer implements FileWriter {
  readonly ref: FileRef;
  readonly #bucket: S3Bucket;
  readonly #file: NewObject;
  readonly #stop = new AbortController();
  readonly #free: PartBuffer[] = [];
  readonly #inFlight = new Set<Promise<void>>();
  readonly #tags: string[] = [];
  #filling: PartBuffer;
  #upload: Promise<string> | null = null;
  #parts = 0;
  #bytes = 0;
  #error: unknown = null;
  /** True once the request to make the file visible was sent, even if it failed. */
  #isPublished = false;
  #state: 'open' | 'committed' | 'discarded' = 'open';

  constructor(bucket: S3Bucket, file: NewObject) {
    this.ref = file.ref;
    this.#bucket = bucket;
    this.#file = file;
    this.#filling = new PartBuffer(file.partBytes);
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#check();
    this.#bytes += bytes.length;
    let rest = bytes;
    while (rest.length > 0) {
      rest = this.#filling.add(rest);
      if (this.#filling.isFull) await this.#sendPart();
    }
  }

  async commit(): Promise<FileRef> {
    this.#check();
    if (this.#parts === 0) await this.#putWhole();
    else await this.#complete();
    this.#state = 'committed';
    return this.#file.ref;
  }

  async discard(): Promise<void> {
    if (this.#state !== 'open') return;
    this.#state = 'discarded';
    this.#stop.abort();
    await Promise.all(this.#inFlight);
    const { key } = this.#file;
    const uploadId = await this.#upload?.catch(() => null);
    if (typeof uploadId === 'string') await this.#bucket.abortUpload(key, uploadId);
    if (this.#isPublished) await this.#bucket.remove(key);
  }

  async #putWhole(): Promise<void> {
    this.#isPublished = true;
    await this.#bucket.put(this.#file.key, this.#filling.bytes);
  }

  async #complete(): Promise<void> {
    if (this.#filling.length > 0) await this.#sendPart();
    await Promise.all(this.#inFlight);
    this.#check();
    const { key } = this.#file;
    const uploadId = await this.#beginUpload();
    this.#isPublished = true;
    try {
      await this.#bucket.completeUpload(key, uploadId, this.#tags);
    } catch (error) {
      // If the file exists but the upload does not, an earlier request completed it and the
      // response was lost.
      if (!(error instanceof MissingFileError) || (await this.#bucket.size(key)) !== this.#bytes) throw error;
    }
  }

  /** Resolves once the part is being sent. If sending fails, the next call throws the error. */
  async #sendPart(): Promise<void> {
    while (this.#inFlight.size >= S3_PARTS_IN_FLIGHT) await Promise.race(this.#inFlight);
    this.#check();
    const part = this.#filling;
    this.#filling = this.#free.pop() ?? new PartBuffer(this.#file.partBytes);
    const sending = this.#send(this.#parts++, part)
      .catch((error: unknown) => {
        this.#error ??= error;
      })
      .finally(() => {
        part.clear();
        this.#free.push(part);
        this.#inFlight.delete(sending);
      });
    this.#inFlight.add(sending);
  }

  async #send(index: number, part: PartBuffer): Promise<void> {
    const uploadId = await this.#beginUpload();
    const { key } = this.#file;
    this.#tags[index] = await this.#bucket.putPart(key, uploadId, index + 1, part.bytes, this.#stop.signal);
  }

  #beginUpload(): Promise<string> {
    this.#upload ??= this.#bucket.beginUpload(this.#file.key);
    return this.#upload;
  }

  #check(): void {
    if (this.#state !== 'open') throw new Error(`the file is already ${this.#state}`);
    if (this.#error !== null) throw this.#error;
  }
}

const firstBytes = 64 * 1024;

/** Bytes of one part. The buffer starts small and doubles, because most files are small. */
class PartBuffer {
  #buffer = Buffer.allocUnsafeSlow(0);
  #length = 0;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  get isFull(): boolean {
    return this.#length === this.#limit;
  }

  /** The bytes of the part. They are valid until the next call of `clear`. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  add(bytes: Uint8Array): Uint8Array {
    const count = Math.min(bytes.length, this.#limit - this.#length);
    this.#makeRoom(this.#length + count);
    this.#buffer.set(bytes.subarray(0, count), this.#length);
    this.#length += count;
    return bytes.subarray(count);
  }

  clear(): void {
    this.#length = 0;
  }

  #makeRoom(needed: number): void {
    if (needed <= this.#buffer.length) return;
    const size = Math.min(this.#limit, Math.max(firstBytes, this.#buffer.length * 2, needed));
    const larger = Buffer.allocUnsafeSlow(size);
    this.bytes.copy(larger);
    this.#buffer = larger;
  }
}
