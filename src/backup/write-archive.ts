import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { BACKUP_PART_BYTES } from '../domain/limits.ts';
import { type About, type Content, Contents, type Item, type Manifest, Meter, partName } from './archive.ts';
import { type TarEntry, tarEnd, tarEntry } from './tar.ts';

/** Writes an archive into a stream, which it ends. After an error the stream is to be thrown away. */
export class ArchiveWriter {
  readonly #gzip = createGzip({ level: 1 });
  readonly #contents = new Contents();
  readonly #seconds: number;
  readonly #sent: Promise<void>;
  #bytes = 0;

  constructor(to: Writable, about: About) {
    this.#seconds = Math.floor(new Date(about.created_at).getTime() / 1000);
    this.#gzip.pipe(to);
    to.on('error', (error) => this.#gzip.destroy(error));
    // It also fails while nobody writes to it: the next write says so, or the end.
    this.#gzip.on('error', () => undefined);
    this.#sent = finished(to);
    // Whoever writes hears of it first.
    this.#sent.catch(() => undefined);
  }

  static async begin(to: Writable, about: About): Promise<ArchiveWriter> {
    const writer = new ArchiveWriter(to, about);
    await writer.#put({ name: 'backup.json', content: json(about) });
    return writer;
  }

  /** So far, before they are compressed. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Files before tables; each once. */
  async add(item: Item, chunks: AsyncIterable<Buffer>): Promise<Content> {
    const meter = new Meter();
    let part: Buffer[] = [];
    let [partBytes, parts] = [0, 0];
    const flush = async (): Promise<void> => {
      parts++;
      await this.#put({ name: partName(item, parts), content: Buffer.concat(part) });
      [part, partBytes] = [[], 0];
    };
    for await (const chunk of chunks) {
      meter.add(chunk);
      for (let rest = chunk; rest.length > 0; ) {
        const taken = rest.subarray(0, BACKUP_PART_BYTES - partBytes);
        part.push(taken);
        partBytes += taken.length;
        rest = rest.subarray(taken.length);
        if (partBytes === BACKUP_PART_BYTES) await flush();
      }
    }
    if (partBytes > 0 || parts === 0) await flush();
    const content = meter.content();
    this.#contents.add(item, content);
    return content;
  }

  async end(): Promise<Manifest> {
    const manifest = this.#contents.manifest();
    await this.#put({ name: 'manifest.json', content: json(manifest) });
    this.#gzip.end(tarEnd);
    await this.#sent;
    return manifest;
  }

  async #put(entry: TarEntry): Promise<void> {
    for (const bytes of tarEntry(entry, this.#seconds)) {
      this.#bytes += bytes.length;
      if (this.#gzip.errored !== null) throw this.#gzip.errored;
      if (!this.#gzip.write(bytes)) await once(this.#gzip, 'drain');
    }
  }
}

function json(value: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 1)}\n`);
}
